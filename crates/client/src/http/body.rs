//! The body of a response, as a stream.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;

use crate::Error;

/// The body of a response as a stream of pieces.
///
/// A slow reader holds back only this body. The body is complete only if the stream ends without an
/// error. A lost connection is an error, because a body cannot be resumed. Dropping it cancels the
/// request.
pub struct HttpBody {
    pieces: Pin<Box<dyn Stream<Item = Result<Bytes, Error>> + Send>>,
    is_over: bool,
}

impl HttpBody {
    pub(crate) fn new(pieces: impl Stream<Item = Result<Bytes, Error>> + Send + 'static) -> Self {
        HttpBody {
            pieces: Box::pin(pieces),
            is_over: false,
        }
    }

    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self::new(Whole(Some(bytes).filter(|bytes| !bytes.is_empty())))
    }

    /// The next piece; `None` after the last one. Cancel safe.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Collects the rest of the body. Fails if it has more than `most` bytes.
    pub async fn bytes(mut self, most: usize) -> Result<Bytes, Error> {
        let mut all = BytesMut::new();
        while let Some(piece) = self.next().await {
            let piece = piece?;
            if all.len() + piece.len() > most {
                return Err(Error::BodyTooLarge { most });
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }
}

impl Stream for HttpBody {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        let next = this.pieces.as_mut().poll_next(cx);
        this.is_over = matches!(next, Poll::Ready(None | Some(Err(_))));
        next
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpBody")
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}

/// A body in one piece.
struct Whole(Option<Bytes>);

impl Stream for Whole {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}
