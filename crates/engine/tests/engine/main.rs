//! The engine with real processes, and no wire.

mod delivery;
mod owner;
mod sessions;
mod writes;
