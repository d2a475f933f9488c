//! File operations behind walls: the same operations, done by a confined process of ours.
//!
//! Whoever has a [`Clerk`] can't tell where its operations are done. A clerk that is confined asks
//! over a [`Line`], and at the other end [`serve`] does what is asked, in a process that can reach
//! only what it may. Every path is looked up there and never here.
//!
//! - [`clerk`]: the operations, here or there; [`writer`]: a file that is being replaced
//! - [`request`] and [`answer`]: what goes over the line, written down with [`parts`]
//! - [`line`]: how it goes there; [`serving`]: who answers; [`doing`]: what is done here and there;
//!   [`masks`]: what stands for something else
//!
//! **Bytes of files don't go over the line.** A file is opened there, and its descriptor comes here:
//! what may be done with it was decided when it was opened, by the walls around who opened it. What
//! is decided by a name, such as putting a new file in the place of an old one, is done there.

mod answer;
mod clerk;
mod doing;
mod line;
mod masks;
mod parts;
mod request;
mod serving;
mod writer;

pub use clerk::{Clerk, Confined, Here};
pub use line::Line;
pub use masks::Masks;
pub use serving::serve;
pub use writer::Writer;
