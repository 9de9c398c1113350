//! Reads one request and writes the short answers (HOST-D4).
//!
//! The one idea: every stream starts with one length-prefixed JSON object, and its shape says what it is; whatever has no
//! known shape gets a defined error and never more of this node's time or memory than a small message costs.

use std::io;

use dig_dht::{DhtRequest, DhtResponse};
use dig_nat::mux::{AvailabilityRequest, RangeRequest};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest request, bytes; the wire's own limit for control messages.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// One request, by shape.
#[derive(Debug)]
pub(super) enum Request {
    Range(RangeRequest),
    Availability(AvailabilityRequest),
    Dht(DhtRequest),
    /// None of the above, and the answer it gets.
    Refused(Vec<u8>),
}

/// JSON-RPC error codes, as the DIG protocol uses them.
#[derive(Clone, Copy)]
pub(super) enum Code {
    Parse = -32700,
    InvalidRequest = -32600,
    MethodNotFound = -32601,
    ResourceUnavailable = -32004,
}

/// Reads the request at the start of a stream.
///
/// # Errors
/// Those of reading, and `InvalidData` for a length beyond the limit: such a stream has no use any more.
pub(super) async fn read(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Request> {
    let length = reader.read_u32().await? as usize;
    if length > REQUEST_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a request longer than the wire allows"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await?;
    Ok(parse(&body))
}

fn parse(body: &[u8]) -> Request {
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(_) => return Request::Refused(error(None, Code::Parse, "the request is not JSON")),
    };
    let has = |key| value.get(key).is_some();
    let parsed = if has("type") {
        serde_json::from_value(value).map(Request::Dht).map_err(|_| {
            DhtResponse::Error { code: 1, message: "the request is none of this DHT's".to_owned() }.encode()
        })
    } else if has("items") {
        serde_json::from_value(value).map(Request::Availability).map_err(|_| invalid("no availability request"))
    } else if let Some(id) = value.get("id").filter(|_| has("method")) {
        Err(error(Some(id), Code::MethodNotFound, "this node serves ranges, availability and the DHT only"))
    } else if has("length") {
        serde_json::from_value(value).map(Request::Range).map_err(|_| invalid("no range request"))
    } else {
        Err(invalid("the request is of no known kind"))
    };
    parsed.unwrap_or_else(Request::Refused)
}

fn invalid(message: &str) -> Vec<u8> {
    error(None, Code::InvalidRequest, message)
}

/// A framed JSON-RPC error.
pub(super) fn error(id: Option<&Value>, code: Code, message: &str) -> Vec<u8> {
    frame(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code as i32, "message": message } }))
}

/// `value` as JSON behind its length.
fn frame(value: &Value) -> Vec<u8> {
    let body = value.to_string();
    [&(body.len() as u32).to_be_bytes()[..], body.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_is_known_by_its_shape() {
        let range = RangeRequest::resource("s", "k", 0, 1).encode().unwrap();
        assert!(matches!(parse(&range[4..]), Request::Range(_)));
        let query = AvailabilityRequest::new(vec![]).encode().unwrap();
        assert!(matches!(parse(&query[4..]), Request::Availability(_)));
        let ping = DhtRequest::Ping { nonce: 1 }.encode();
        assert!(matches!(parse(&ping[4..]), Request::Dht(DhtRequest::Ping { nonce: 1 })));
    }

    #[test]
    fn what_has_no_shape_gets_an_error_that_is_json_itself() {
        for (body, code) in [
            (&b"\xff\xfe"[..], Code::Parse),
            (b"", Code::Parse),
            (b"[]", Code::InvalidRequest),
            (b"{}", Code::InvalidRequest),
            (br#"{"items":7}"#, Code::InvalidRequest),
            (br#"{"length":-1,"store_id":""}"#, Code::InvalidRequest),
            (br#"{"length":18446744073709551616,"store_id":""}"#, Code::InvalidRequest),
            (br#"{"method":"dig.getPeers","id":1}"#, Code::MethodNotFound),
        ] {
            let Request::Refused(answer) = parse(body) else { panic!("{body:?} was accepted") };
            let answer: Value = serde_json::from_slice(&answer[4..]).unwrap();
            assert_eq!(answer["error"]["code"], code as i32, "{body:?}");
        }
        let nested = "[".repeat(60_000);
        assert!(matches!(parse(nested.as_bytes()), Request::Refused(_)));
    }

    proptest! {
        #[test]
        fn any_bytes_at_all_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = futures::executor::block_on(read(&mut &bytes[..]));
            parse(&bytes);
        }
    }
}
