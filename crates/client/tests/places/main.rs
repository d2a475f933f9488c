//! Every case on every kind of place: who holds one can't tell which it is.

mod attaching;
mod control;
mod distance;
mod ending;
mod events;
mod files;
mod http;
mod input;
mod places;
mod polling;
mod refusals;
mod speed;
