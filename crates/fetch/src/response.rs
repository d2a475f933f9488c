//! Responses.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http_body::Body as _;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{Cause, FetchError};

/// The head of a response, and its body.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names and values. Names are in lower case, in the order of their first occurrence. The values
    /// of a repeated name are adjacent.
    pub headers: Vec<(String, String)>,
    /// The body, as it was sent.
    pub body: Body,
}

/// The body of a response. Dropping it closes the exchange.
#[derive(Debug)]
pub struct Body {
    inner: reqwest::Body,
    /// The deadline, and the timeout it was computed from.
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
    /// Reads the next bytes. Returns `None` at the end. Cancel safe.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        self.next().await.transpose()
    }

    /// Returns the length of the body, if it was announced.
    #[must_use]
    pub fn announced_len(&self) -> Option<u64> {
        self.inner.size_hint().exact()
    }

    /// Reads the whole body of at most `most` bytes. After `few` bytes, waits for `space` before it
    /// reads the rest, and fails if there is none.
    pub async fn collect<R>(
        &mut self,
        most: usize,
        few: usize,
        space: impl Future<Output = Option<R>>,
    ) -> Result<(Bytes, Option<R>), FetchError> {
        let mut whole = Vec::new();
        let mut space = Some(space);
        let mut held = None;
        while let Some(chunk) = self.chunk().await? {
            if whole.len() + chunk.len() > most {
                return Err(FetchError::TooLarge(most));
            }
            if whole.len() + chunk.len() > few
                && let Some(space) = space.take()
            {
                let space = self.in_time(space).await?;
                held = Some(space.ok_or(FetchError::NoSpace)?);
            }
            whole
                .try_reserve(chunk.len())
                .map_err(|_| FetchError::NoSpace)?;
            whole.extend_from_slice(&chunk);
        }
        Ok((whole.into(), held))
    }

    /// Waits for a future until the deadline.
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
                    // Frames other than data are trailers, which are ignored.
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
            // Dropping the body closes the connection, unless it can be reused.
            this.inner = reqwest::Body::default();
        }
        Poll::Ready(next)
    }
}

/// Decodes the value of a header as UTF-8, or else as ISO-8859-1, which loses no byte.
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
    fn header_values_lose_no_byte() {
        assert_eq!(text("grün".as_bytes()), "grün");
        assert_eq!(text(b"gr\xfcn"), "grün");
    }
}
