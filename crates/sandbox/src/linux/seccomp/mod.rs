//! The seccomp filter of confined processes.
//!
//! - [`rules`]: tables of forbidden and conditional system calls
//! - [`filter`](mod@filter): compiles the tables to a BPF program

mod filter;
mod rules;

pub(super) use filter::filter;
