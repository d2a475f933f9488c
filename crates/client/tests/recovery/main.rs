//! Recovery of a remote executor, against a simulated server that each test controls, in memory
//! and with paused time.

mod acknowledging;
mod attaching;
mod catching_up;
mod failing;
mod faulty_servers;
mod files;
mod files_written;
mod http;
mod invalid_file_responses;
mod older_servers;
mod races;
mod resuming;
mod sim;
mod starts;
mod stdin;
mod traffic;
mod watching;
