//! The engine with real processes, and no wire.

mod delivery;
mod owner;
mod private;
mod sessions;
mod writes;
