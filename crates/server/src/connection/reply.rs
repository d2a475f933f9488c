//! The answer that a request is owed.

use outpost_protocol::{NoMemory, RequestId, RpcError, encode_error, encode_response};
use outpost_rpc::{Answer, Outbox, Ticket, outbox::Reservation};
use serde::Serialize;

/// A request that has to be answered once. Dropping it unanswered is for
/// connections that are gone.
pub(crate) struct Reply {
    outbox: Outbox,
    id: RequestId,
    ticket: Option<Ticket>,
}

impl Reply {
    pub(crate) fn new(outbox: Outbox, id: RequestId, ticket: Option<Ticket>) -> Self {
        Reply { outbox, id, ticket }
    }

    /// The client's key for the request.
    pub(crate) fn id(&self) -> &RequestId {
        &self.id
    }

    /// Answers with a message that was encoded already, for which room was
    /// reserved.
    pub(crate) fn send_message(self, message: Vec<u8>, reservation: Reservation) {
        self.outbox.answer(Answer {
            message,
            ticket: self.ticket,
            reservation: Some(reservation),
        });
    }

    /// Counts among the requests under way from now on.
    pub(crate) fn counted(self, ticket: Ticket) -> Self {
        Reply {
            ticket: Some(ticket),
            ..self
        }
    }

    /// The answer as a message, for who sends it in another way. It no longer
    /// counts among the requests under way.
    pub(crate) fn into_message<T: Serialize>(self, result: Result<T, RpcError>) -> Vec<u8> {
        self.encode(&result)
    }

    /// Answers.
    pub(crate) fn send<T: Serialize>(self, result: Result<T, RpcError>) {
        self.outbox.answer(Answer {
            message: self.encode(&result),
            ticket: self.ticket,
            reservation: None,
        });
    }

    /// Answers with something large, of about so many bytes, for which room was
    /// reserved on the connection.
    pub(crate) fn send_large<T: Serialize>(
        self,
        result: T,
        bytes: usize,
        reservation: Reservation,
    ) {
        let mut message = Vec::new();
        let message = match message.try_reserve_exact(bytes) {
            Ok(()) => self.encode_into(message, &Ok(result)),
            Err(_) => self.encode::<()>(&Err(no_memory("answer"))),
        };
        self.outbox.answer(Answer {
            message,
            ticket: self.ticket,
            reservation: Some(reservation),
        });
    }

    fn encode<T: Serialize>(&self, result: &Result<T, RpcError>) -> Vec<u8> {
        self.encode_into(Vec::new(), result)
    }

    fn encode_into<T: Serialize>(
        &self,
        mut message: Vec<u8>,
        result: &Result<T, RpcError>,
    ) -> Vec<u8> {
        let encoded = match result {
            Ok(result) => encode_response(&mut message, &self.id, result),
            Err(error) => {
                encode_error(&mut message, &self.id, error);
                Ok(())
            }
        };
        if let Err(error) = encoded {
            message.clear();
            let error = RpcError::internal(format!("failed to encode the answer: {error}"));
            encode_error(&mut message, &self.id, &error);
        }
        message
    }
}

/// What one request wanted memory for that the system doesn't have.
pub(crate) fn no_memory(what: &str) -> RpcError {
    RpcError::internal(format!("failed to hold the {what}: {NoMemory}"))
}
