//! The few things that are not safe, one a file: the clone and the stack it runs on, what the child
//! does before it is a program of its own, what becomes of signals, the mask of the spawner's threads, what a
//! runtime is given to watch, and for keepers the fork and the wait for children.

pub(crate) mod birth;
pub(crate) mod children;
pub(crate) mod clone;
pub(crate) mod dispositions;
pub(crate) mod fork;
pub(crate) mod mask;
pub(crate) mod register;
pub(crate) mod stack;
