//! Tests ordering, limits and slow readers.

mod fairness;
mod in_flight;
mod links;
mod order;
mod requests;
mod slow_reader;
