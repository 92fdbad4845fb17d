//! Messages of gRPC calls, and responses of token endpoints.

use bytes::Bytes;
use http::StatusCode;
use kubewake_collector::fuzzing;
use serde_json::Value;

use crate::{choice, memory::bounded};

/// A message is the bytes behind its prefix, however the frames cut it, and a length alone reserves nothing.
pub(super) fn grpc_message(data: &[u8]) {
    let (choice, call) = choice(data);
    let max = [0, 16, 4 << 10, 4 << 20][choice % 4];
    let size = [1, 2, 7, 100, call.len().max(1)][choice / 4 % 5];
    let call = Bytes::copy_from_slice(call);
    let mut frames: Vec<Bytes> = call.chunks(size).map(|frame| call.slice_ref(frame)).collect();
    // Empty frames are allowed everywhere.
    if choice / 20 % 2 == 1 {
        frames.extend([Bytes::new(), Bytes::new()]);
        frames.insert(0, Bytes::new());
    }
    // The first piece may make room for a small message as a whole.
    let read = bounded("a message", call.len(), 16, 16 << 10, || fuzzing::grpc_message(frames, max));
    let expected = call.split_first_chunk::<5>().and_then(|([flag, length @ ..], message)| {
        let length = u32::from_be_bytes(*length) as usize;
        (length == message.len() && length <= max).then_some((message, *flag != 0))
    });
    match (&read, expected) {
        (Ok((message, compressed)), Some(expected)) => assert_eq!((&message[..], *compressed), expected),
        (Err(_), None) => {}
        _ => panic!("{read:?} instead of {expected:?}"),
    }
}

/// A token comes from the response, in a header that no log shows. An error repeats nothing but an error code.
pub(super) fn oauth2_answer(data: &[u8]) {
    let (choice, body) = choice(data);
    let status = [StatusCode::OK, StatusCode::CREATED, StatusCode::BAD_REQUEST, StatusCode::SERVICE_UNAVAILABLE];
    let status = status[choice % status.len()];
    let answer = bounded("a token", body.len(), 64, 16 << 10, || fuzzing::oauth2_token(status, body));
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    match answer {
        Ok((header, life)) => {
            assert!(status.is_success() && header.is_sensitive());
            let text = header.as_bytes();
            let token = value["access_token"].as_str().expect("it holds a token");
            assert!(!token.is_empty() && text.ends_with(token.as_bytes()));
            // A lifetime above one year counts as unlimited.
            assert!(life.is_none_or(|life| (1..=365 * 24 * 3600).contains(&life.as_secs())));
        }
        Err(message) => {
            let code = value["error"].as_str().unwrap_or_default();
            let code =
                code.len() <= 40 && !code.is_empty() && code.bytes().all(|c| c.is_ascii_lowercase() || c == b'_');
            let shown = message.split_once('(').map(|(_, shown)| shown.trim_end_matches(')'));
            assert_eq!(shown, value["error"].as_str().filter(|_| code), "{message}");
            assert!(message.len() <= 120, "{message}");
        }
    }
}
