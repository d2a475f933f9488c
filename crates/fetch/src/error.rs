//! Errors. No text contains secrets of the request.

use std::{error::Error, fmt, io, time::Duration};

/// The reason why a request is invalid. The text continues one that names the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The method is not a valid HTTP token, or is `CONNECT`.
    #[error("method is invalid")]
    Method,
    /// The URL is invalid.
    #[error("url is invalid: {0}")]
    Url(UrlFault),
    /// There are more headers than this.
    #[error("has more than {0} headers")]
    TooManyHeaders(usize),
    /// The name of the header at this position, counted from 1, is not a valid HTTP token.
    #[error("header number {0} has a name that cannot be sent")]
    HeaderName(usize),
    /// The value of the named header has invalid bytes.
    #[error("header {0} has a value that cannot be sent")]
    HeaderValue(String),
    /// This header, `Content-Length`, differs from the length of the body.
    #[error("header {0} contradicts the length of the body")]
    WrongLength(String),
    /// The environment variable of a header is unusable.
    #[error("header {name} {fault} executor environment variable {variable}")]
    Variable {
        /// The header's name.
        name: String,
        /// The variable's name.
        variable: String,
        /// Why it is unusable.
        fault: VariableFault,
    },
}

/// The reason why an environment variable is unusable. The text stands between the names of the
/// header and the variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableFault {
    /// The variable is protected.
    #[error("cannot use")]
    Protected,
    /// The variable is not set.
    #[error("requires")]
    Unset,
    /// The variable is empty.
    #[error("requires a non-empty")]
    Empty,
}

/// The reason why a URL is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// It is no URL.
    #[error("{0}")]
    Form(<reqwest::Url as std::str::FromStr>::Err),
    /// Its scheme is neither http nor https.
    #[error("only http and https URLs are supported")]
    Scheme,
    /// It is longer than this, in bytes.
    #[error("it is longer than {0} bytes")]
    Length(usize),
}

/// The reason why a request or the body of its response failed.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The HTTP client could not be set up.
    #[error("cannot create the HTTP client: {0}")]
    Unprepared(io::Error),
    /// The connection failed.
    #[error("cannot connect to {host}: {cause}")]
    Connect {
        /// The host.
        host: String,
        /// The cause.
        cause: Cause,
    },
    /// The host was reached but sent no response.
    #[error("no response from {host}: {cause}")]
    Exchange {
        /// The host.
        host: String,
        /// The cause.
        cause: Cause,
    },
    /// The timeout expired.
    #[error("it took longer than {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// There were too many redirects.
    #[error("more than {0} redirects")]
    TooManyRedirects(usize),
    /// A redirect led to another scheme.
    #[error("redirect target is neither http nor https")]
    ForeignRedirect,
    /// The caller has no space for the body.
    #[error("there is no space for the body")]
    NoSpace,
    /// The body ended early.
    #[error("the body ended early: {0}")]
    Body(Cause),
    /// The body is larger than this, in bytes, and so too large for a single response.
    #[error("the body is larger than {0} bytes, and has to be streamed (streamResponse: true)")]
    TooLarge(usize),
}

/// The innermost cause of a failure. The outer errors are dropped: they repeat it, and some of
/// them contain the URL.
#[derive(Debug)]
pub struct Cause(Box<dyn Error + Send + Sync>);

impl Cause {
    pub(crate) fn of(error: reqwest::Error) -> Self {
        Cause(Box::new(error.without_url()))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut innermost: &dyn Error = &*self.0;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        fmt::Display::fmt(innermost, f)
    }
}
