//! HTTP requests that a place makes: from this machine, or from where its server stands.

mod body;
mod request;
mod response;

pub use body::HttpBody;
pub use request::HttpRequest;
pub use response::HttpResponse;
pub(crate) use response::pairs;
