//! What a remote place does when things go wrong, against a server that does
//! exactly what each test wants, over memory, with time that stands still.

mod acknowledging;
mod attaching;
mod catching_up;
mod crossing;
mod distrust;
mod failing;
mod files;
mod files_written;
mod http;
mod older_servers;
mod resuming;
mod sim;
mod starts;
mod thrift;
mod untrue;
mod writing;
