//! What came back.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use http_body::Body as _;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{FetchError, error::Cause};

/// The head of a response, and its body to come.
#[derive(Debug)]
pub struct Response {
    /// The number in its first line.
    pub status: u16,
    /// Names and values. Names are in lower case and in the order in which they first came; the
    /// values of a name that was repeated follow each other.
    pub headers: Vec<(String, String)>,
    /// The bytes, as they were sent.
    pub body: Body,
}

/// The body of a response. Dropping it ends the exchange.
pub struct Body {
    inner: reqwest::Body,
    /// When it is too late for the rest, and how much time there was.
    limit: Option<(Pin<Box<Sleep>>, Duration)>,
    is_over: bool,
}

impl Response {
    pub(crate) fn new(response: reqwest::Response, limit: Option<(Instant, Duration)>) -> Self {
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), text(value.as_bytes())));
        Response {
            status: response.status().as_u16(),
            headers: headers.collect(),
            body: Body {
                limit: limit.map(|(deadline, time)| (Box::pin(sleep_until(deadline)), time)),
                inner: response.into(),
                is_over: false,
            },
        }
    }
}

impl Body {
    /// The next bytes; none behind the last ones. Cancel-safe.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx))
            .await
            .transpose()
    }

    /// The whole body, if it has so many bytes at most. Where there are more than `few`, the rest is
    /// read when `room` has been waited for.
    pub async fn collect<R>(
        &mut self,
        most: usize,
        few: usize,
        room: impl Future<Output = R>,
    ) -> Result<(Bytes, Option<R>), FetchError> {
        let mut whole = BytesMut::new();
        let mut room = Some(room);
        let mut held = None;
        while let Some(chunk) = self.chunk().await? {
            if whole.len() + chunk.len() > most {
                return Err(FetchError::TooLarge { most });
            }
            if whole.len() + chunk.len() > few
                && let Some(room) = room.take()
            {
                held = Some(self.in_time(room).await?);
            }
            whole.extend_from_slice(&chunk);
        }
        Ok((whole.freeze(), held))
    }

    /// Waits for something, as long as there is time.
    async fn in_time<T>(&mut self, future: impl Future<Output = T>) -> Result<T, FetchError> {
        match &mut self.limit {
            None => Ok(future.await),
            Some((sleep, time)) => tokio::select! {
                value = future => Ok(value),
                () = sleep.as_mut() => Err(FetchError::TimedOut(*time)),
            },
        }
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, FetchError>>> {
        if let Some((sleep, time)) = &mut self.limit
            && sleep.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Some(Err(FetchError::TimedOut(*time))));
        }
        loop {
            match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => {
                    return Poll::Ready(Some(Err(FetchError::Body(Cause::of(error)))));
                }
                Some(Ok(frame)) => {
                    // What isn't data is trailers, which nobody asks for.
                    if let Ok(bytes) = frame.into_data()
                        && !bytes.is_empty()
                    {
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                }
            }
        }
    }
}

impl Stream for Body {
    type Item = Result<Bytes, FetchError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        let next = ready!(this.poll_more(cx));
        if !matches!(next, Some(Ok(_))) {
            this.is_over = true;
            // The connection goes with it, unless it can be used again.
            this.inner = reqwest::Body::default();
        }
        Poll::Ready(next)
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body")
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}

/// What a header says. Most are ASCII; what isn't UTF-8 is what HTTP took every text for once, a
/// character for each byte, so that nothing is lost.
fn text(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => value.iter().map(|byte| char::from(*byte)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn no_byte_of_a_header_is_lost() {
        assert_eq!(text("grün".as_bytes()), "grün");
        assert_eq!(text(b"gr\xfcn"), "grün");
    }
}
