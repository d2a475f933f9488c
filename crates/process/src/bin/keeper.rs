//! A program that keeps process trees and nothing else, for the tests of this crate: their own
//! program belongs to the test harness. Programs that use the crate can be their own keeper.

use std::process::ExitCode;

fn main() -> ExitCode {
    outpost_process::keeper::main()
}
