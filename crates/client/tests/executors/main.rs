//! Every test runs on every kind of executor: they behave alike.

mod attaching;
mod control;
mod ending;
mod events;
mod files;
mod harness;
mod http;
mod large_output;
mod limits;
mod peek;
mod polling;
mod rejections;
mod stdin;
mod watching;
