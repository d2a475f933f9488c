//! What can go wrong, without a word of what was secret in the request.

use std::{error::Error, fmt, io, time::Duration};

/// Why a request can't be made at all. The words continue a sentence that says what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The method is no token, or one that asks for a tunnel.
    #[error("method is not one that can be sent")]
    Method,
    /// The URL can't be understood.
    #[error("url is invalid: {0}")]
    Url(UrlFault),
    /// There are too many headers.
    #[error("has more than {most} headers")]
    TooManyHeaders {
        /// How many there may be.
        most: usize,
    },
    /// The name of a header is no token.
    #[error("header number {number} has a name that cannot be sent")]
    HeaderName {
        /// Which one, counted from 1.
        number: usize,
    },
    /// The value of a header has bytes that no value may have.
    #[error("header {name} has a value that cannot be sent")]
    HeaderValue {
        /// Its name.
        name: String,
    },
    /// A length was given, and the body has another one.
    #[error("header {name} does not tell the length of the body")]
    WrongLength {
        /// Its name.
        name: String,
    },
    /// The variable is one that is nobody's business.
    #[error("header {name} cannot use executor environment variable {variable}")]
    ProtectedVariable {
        /// The header's name.
        name: String,
        /// The variable's.
        variable: String,
    },
    /// The variable isn't set.
    #[error("header {name} requires executor environment variable {variable}")]
    UnsetVariable {
        /// The header's name.
        name: String,
        /// The variable's.
        variable: String,
    },
    /// The variable is set to nothing.
    #[error("header {name} requires a non-empty executor environment variable {variable}")]
    EmptyVariable {
        /// The header's name.
        name: String,
        /// The variable's.
        variable: String,
    },
}

/// What is wrong with a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlFault {
    /// It has another form than a URL.
    #[error("{0}")]
    Form(<reqwest::Url as std::str::FromStr>::Err),
    /// It is one, and not of the web.
    #[error("only http and https can be asked for")]
    Scheme,
    /// Nobody could send it.
    #[error("it is longer than {most} bytes")]
    Length {
        /// How long it may be.
        most: usize,
    },
}

/// Why a request has no response, or a response no more body.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Whom to trust could not be found out.
    #[error("cannot prepare to make requests: {0}")]
    Unprepared(io::Error),
    /// Nobody was reached.
    #[error("cannot connect to {host}: {cause}")]
    Connect {
        /// Whom it was for.
        host: String,
        /// What the system or the other end said.
        cause: Cause,
    },
    /// Somebody was reached and no response came.
    #[error("no response from {host}: {cause}")]
    Exchange {
        /// Whom it was for.
        host: String,
        /// What became of it.
        cause: Cause,
    },
    /// Its time was over.
    #[error("it took longer than {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// Each response pointed to another one.
    #[error("it was redirected more than {0} times")]
    TooManyRedirects(usize),
    /// A response pointed out of the web.
    #[error("it was redirected to something that is neither http nor https")]
    ForeignRedirect,
    /// A body ended before it was whole.
    #[error("the body broke off: {0}")]
    Body(Cause),
    /// A body is too large to be had in one piece.
    #[error("the body is larger than {most} bytes, and has to be streamed (streamResponse: true)")]
    TooLarge {
        /// How large it may be.
        most: usize,
    },
}

/// The innermost reason of a failure: the layers around it repeat each other, and some of them
/// would tell the URL.
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
