use std::io;

use super::*;

#[derive(Debug, thiserror::Error)]
enum Sample {
    #[error("the child cannot be made")]
    Source(#[source] kube::Error),
    #[error("the child cannot be made: {0}")]
    Both(#[source] kube::Error),
    #[error("the child cannot be made: {0:?}")]
    Shown(#[source] kube::Error),
    #[error("the child cannot be made")]
    Boxed(#[source] Box<kube::Error>),
    #[error("alone")]
    Alone,
}

fn refusal() -> kube::Error {
    kube::Error::Api(Box::new(Status::failure("it may not be", "Forbidden").with_code(403)))
}

#[test]
fn an_answer_is_said_once_however_it_is_wrapped() {
    let boxed = Sample::Boxed(Box::new(refusal()));
    for error in [Sample::Source(refusal()), Sample::Both(refusal()), Sample::Shown(refusal()), boxed] {
        assert_eq!(error_chain(&error), "the child cannot be made: it may not be (Forbidden, 403)", "{error:?}");
        assert_eq!(api_error(&error).map(|status| status.code), Some(403));
    }
    let watch = kube::runtime::watcher::Error::InitialListFailed(refusal());
    assert_eq!(error_chain(&watch), "failed to perform initial object list: it may not be (Forbidden, 403)");
    let silent = kube::Error::Api(Box::new(Status::failure("", "")));
    assert_eq!(error_chain(&silent), "the API server refused the request");
}

#[test]
fn causes_are_said_once() {
    let broken = || kube::Error::Service(Box::new(io::Error::other("connection refused")));
    assert_eq!(error_chain(&broken()), "connection refused");
    assert_eq!(error_chain(&Sample::Both(broken())), "the child cannot be made: connection refused");
    assert_eq!(error_chain(&Sample::Alone), "alone");
    assert!(api_error(&Sample::Alone).is_none());
}

#[test]
fn what_is_long_is_cut_between_characters() {
    let long = io::Error::other("ä".repeat(2 * MAX_MESSAGE_BYTES));
    assert_eq!(error_chain(&long).len(), MAX_MESSAGE_BYTES);
}

#[test]
fn an_answer_that_is_no_status_is_said_as_it_is() {
    // kube's error for a body that it cannot parse.
    let status = Status::failure("404 page not found\n", "Failed to parse error data").with_code(404);
    assert_eq!(error_chain(&kube::Error::Api(Box::new(status))), "404 page not found (404)");
}
