//! Errors. No text contains secrets of the request.

use std::{error::Error, fmt, io, time::Duration};

/// The reason why a request is invalid. The text continues one that names the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The method is not a valid HTTP token, or is `CONNECT`.
    #[error("method is not one that can be sent")]
    Method,
    /// The URL is invalid.
    #[error("url is invalid: {0}")]
    Url(UrlFault),
    /// There are too many headers.
    #[error("has more than {most} headers")]
    TooManyHeaders {
        /// The limit.
        most: usize,
    },
    /// The name of a header is not a valid HTTP token.
    #[error("header number {number} has a name that cannot be sent")]
    HeaderName {
        /// Its position, counted from 1.
        number: usize,
    },
    /// The value of a header has invalid bytes.
    #[error("header {name} has a value that cannot be sent")]
    HeaderValue {
        /// Its name.
        name: String,
    },
    /// `Content-Length` differs from the length of the body.
    #[error("header {name} does not tell the length of the body")]
    WrongLength {
        /// Its name.
        name: String,
    },
    /// The variable is protected.
    #[error("header {name} cannot use executor environment variable {variable}")]
    ProtectedVariable {
        /// The header's name.
        name: String,
        /// The variable's name.
        variable: String,
    },
    /// The variable is not set.
    #[error("header {name} requires executor environment variable {variable}")]
    UnsetVariable {
        /// The header's name.
        name: String,
        /// The variable's name.
        variable: String,
    },
    /// The variable is empty.
    #[error("header {name} requires a non-empty executor environment variable {variable}")]
    EmptyVariable {
        /// The header's name.
        name: String,
        /// The variable's name.
        variable: String,
    },
}

/// The reason why a URL is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// It is no URL.
    #[error("{0}")]
    Form(<reqwest::Url as std::str::FromStr>::Err),
    /// Its scheme is neither http nor https.
    #[error("only http and https can be asked for")]
    Scheme,
    /// It is too long.
    #[error("it is longer than {most} bytes")]
    Length {
        /// The limit, in bytes.
        most: usize,
    },
}

/// The reason why a request or the body of its response failed.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The HTTP client could not be set up.
    #[error("cannot prepare to make requests: {0}")]
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
    #[error("it was redirected more than {0} times")]
    TooManyRedirects(usize),
    /// A redirect led to another scheme.
    #[error("it was redirected to something that is neither http nor https")]
    ForeignRedirect,
    /// The body ended early.
    #[error("the body broke off: {0}")]
    Body(Cause),
    /// The body is too large for a single response.
    #[error("the body is larger than {most} bytes, and has to be streamed (streamResponse: true)")]
    TooLarge {
        /// The limit, in bytes.
        most: usize,
    },
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
