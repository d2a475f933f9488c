//! The subreaper program for this crate's tests, whose own executable is the test harness. Programs
//! that use the crate can run themselves as the subreaper.

use std::process::ExitCode;

fn main() -> ExitCode {
    outpost_process::subreaper::main()
}
