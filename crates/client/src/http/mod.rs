//! HTTP requests made by an executor: from this machine or from the server's host.

mod body;
mod request;
mod response;

pub use body::HttpBody;
pub use request::HttpRequest;
pub use response::HttpResponse;
#[cfg(feature = "remote")]
pub(crate) use response::pairs;
