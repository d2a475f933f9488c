//! `http/request`: an HTTP request that the server makes.

mod body_frame;
mod request;
mod stream;

pub use body_frame::BodyFrame;
pub use request::{
    HttpHeader, HttpHeaderParams, HttpRequestParams, HttpRequestResult, RedirectPolicy,
};
pub use stream::{HttpAckParams, HttpBodyDelta, HttpCancelParams};
