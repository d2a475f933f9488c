//! Authentication: who a connection speaks for, and what it may do.
//!
//! - [`admission`]: decides which clients may open a WebSocket
//! - [`authenticator`]: checks the credentials of a WebSocket upgrade, and follows changes of the files
//!   that they are checked against
//! - [`bearer`]: finds the token in the headers
//! - [`token_file`], [`token_hash`], [`jwt`]: the kinds of tokens
//! - [`secret_file`]: reads files that only this user may read or change
//! - [`failed_attempts`]: slows down addresses that guess
//! - [`socket_owner`]: the user of a client on loopback, where no token is needed
//! - [`client_certificate`]: names of verified certificates
//! - [`principal`], [`method_scopes`]: names, permissions, and the scope that each method requires
//! - [`roots`]: whether a path lies below the roots of a principal

mod admission;
mod authenticator;
mod bearer;
mod client_certificate;
mod failed_attempts;
mod jwt;
mod method_scopes;
mod principal;
pub(crate) mod roots;
mod secret_file;
mod settings;
mod socket_owner;
mod token_file;
mod token_hash;

pub(crate) use admission::{Client, Refusal, admit};
pub use authenticator::{AuthLoadError, Authenticator};
pub(crate) use authenticator::{Identity, Rejection, TokenSource};
pub(crate) use bearer::{BEARER_PROTOCOL, find_token};
pub(crate) use client_certificate::ClientCertificate;
pub use jwt::JwksError;
pub(crate) use method_scopes::required_scope;
pub(crate) use principal::Principal;
pub use principal::{PrincipalLimits, PrincipalSettings, Principals, Root};
pub(crate) use roots::RequestPath;
pub(crate) use secret_file::read_trusted_file;
pub use secret_file::{SecretFileError, read_secret_file};
pub use settings::{
    AuthSettings, AuthSettingsError, DEFAULT_MAX_CLOCK_SKEW, PRIVATE_SETTINGS, WebSocketAuth,
};
pub(crate) use socket_owner::SocketOwners;
pub use token_file::{AddTokenError, NamedToken, TokenFile, TokenFileError};
pub use token_hash::{ParseTokenHashError, TokenHash};
