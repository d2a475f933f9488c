//! Error codes.

/// Invalid request: wrong state, unknown process, duplicate id, rejected file operation.
pub const INVALID_REQUEST: i64 = -32600;

/// Unknown method.
pub const METHOD_NOT_FOUND: i64 = -32601;

/// Invalid params: wrong type, empty argv, bad base64, a value out of range.
pub const INVALID_PARAMS: i64 = -32602;

/// Internal error: spawn failed, I/O error.
pub const INTERNAL_ERROR: i64 = -32603;

/// Overloaded; the same request may succeed later.
pub const OVERLOADED: i64 = -32001;

/// The path does not exist.
pub const NOT_FOUND: i64 = -32004;

/// The principal of the client may not do this.
pub const NOT_PERMITTED: i64 = -32011;

/// The session is still attached to another connection.
pub const SESSION_ATTACHED: i64 = -32010;
