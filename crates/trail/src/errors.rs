//! Formats errors for people.
//!
//! kube includes the cause of an error in its text and also returns it as the source, and it prints a response
//! of the API server with all fields. So the usual ways to print an error repeat everything, the second time in
//! `Debug` form.

use std::error::Error;

use kube::{config::KubeconfigError, core::Status};

/// The length limit of an error in a span or a log line.
const MAX_MESSAGE_BYTES: usize = 1024;
/// kube's reason where the response was no `Status`, such as `404 page not found` for an unknown kind.
const UNPARSED_STATUS_REASON: &str = "Failed to parse error data";
/// The longest chain of causes that is followed, as an error could be its own cause.
const MAX_DEPTH: usize = 16;

/// An error and its causes, each once; a response of the API server as its message, reason and code. At most
/// 1024 bytes.
///
/// ```
/// # use kubewake_trail::error_chain;
/// #[derive(Debug, thiserror::Error)]
/// #[error("the child cannot be made")]
/// struct NoChild(#[source] kube::Error);
///
/// let refusal = kube::core::Status::failure("pods \"a\" is forbidden", "Forbidden").with_code(403);
/// let error = NoChild(kube::Error::Api(Box::new(refusal)));
/// assert_eq!(error_chain(&error), "the child cannot be made: pods \"a\" is forbidden (Forbidden, 403)");
/// ```
#[must_use]
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = chain_message(error, MAX_DEPTH);
    text.truncate(text.floor_char_boundary(MAX_MESSAGE_BYTES));
    text
}

/// The response of the API server, if the error has one among its causes.
pub(crate) fn api_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(kube::Error::Api(status)) = as_kube_error(error) {
            return Some(status);
        }
        next = error.source();
    }
    None
}

/// Downcasts to kube's error, boxed or not.
fn as_kube_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a kube::Error> {
    error.downcast_ref().or_else(|| error.downcast_ref::<Box<kube::Error>>().map(|error| &**error))
}

fn chain_message(error: &(dyn Error + 'static), depth: usize) -> String {
    if let Some(kube::Error::Api(status)) = as_kube_error(error) {
        return status_message(status);
    }
    if let Some(status) = error.downcast_ref::<Status>() {
        return status_message(status);
    }
    if let Some(kube::Error::Service(inner)) = as_kube_error(error) {
        return chain_message(&**inner, depth.saturating_sub(1));
    }
    if let Some(error) = error.downcast_ref::<KubeconfigError>() {
        return kubeconfig_message(error);
    }
    let text = error.to_string();
    let Some(source) = error.source().filter(|_| depth > 0) else { return text };
    let inner = chain_message(source, depth - 1);
    // hyper's message says less than its cause.
    if text == "client error (Connect)" {
        return inner;
    }
    // Many errors include their source in their own text, in `Display` or `Debug` form.
    for printed in [source.to_string(), format!("{source:?}")] {
        if !printed.is_empty() && text.contains(&printed) {
            return text.replacen(&printed, &inner, 1);
        }
    }
    if text.contains(&inner) { text } else { format!("{text}: {inner}") }
}

/// kube prints paths in `Debug` form within quotes of its own, and a YAML error as an excerpt of several lines.
fn kubeconfig_message(error: &KubeconfigError) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.replace("error: line", "line").replace("'\"", "\"").replace("\"'", "\"")
}

fn status_message(status: &Status) -> String {
    let message = status.message.trim();
    let mut text =
        if message.is_empty() { "the API server refused the request".to_owned() } else { message.to_owned() };
    let code = (status.code != 0).then(|| status.code.to_string());
    let reason = Some(status.reason.clone()).filter(|reason| !reason.is_empty() && reason != UNPARSED_STATUS_REASON);
    let why: Vec<_> = reason.into_iter().chain(code).collect();
    if !why.is_empty() {
        text = format!("{text} ({})", why.join(", "));
    }
    text
}

#[cfg(test)]
mod tests;
