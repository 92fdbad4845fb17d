//! Errors in plain words.
//!
//! kube prints the cause of an error inside it, and gives it as its source, too; and an answer of the API server with all that is in it. So the usual ways to print an error say everything
//! twice, and the second time as Rust sees it.

use std::error::Error;

use kube::{config::KubeconfigError, core::Status};

/// What an error may take of a span or a line.
const MAX_LENGTH: usize = 1024;
/// Causes of causes. Nobody has more, but an error could be its own.
const MAX_DEPTH: usize = 16;

/// An error and its causes, each said once: what the API server answered as its message, reason and code. At most some 1000 characters.
///
/// ```
/// # use kubewake_trail::in_words;
/// #[derive(Debug, thiserror::Error)]
/// #[error("the child cannot be made")]
/// struct NoChild(#[source] kube::Error);
///
/// let refusal = kube::core::Status::failure("pods \"a\" is forbidden: there are enough", "Forbidden").with_code(403);
/// let error = NoChild(kube::Error::Api(Box::new(refusal)));
/// assert_eq!(in_words(&error), "the child cannot be made: pods \"a\" is forbidden: there are enough (Forbidden, 403)");
/// ```
#[must_use]
pub fn in_words(error: &(dyn Error + 'static)) -> String {
    let mut text = words(error, MAX_DEPTH);
    text.truncate(text.floor_char_boundary(MAX_LENGTH));
    text
}

/// What the API server answered, if that is what went wrong.
pub(crate) fn api_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(kube::Error::Api(status)) = of_kube(error) {
            return Some(status);
        }
        next = error.source();
    }
    None
}

/// An error of kube's, perhaps in a box.
fn of_kube<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a kube::Error> {
    error.downcast_ref().or_else(|| error.downcast_ref::<Box<kube::Error>>().map(|error| &**error))
}

fn words(error: &(dyn Error + 'static), depth: usize) -> String {
    if let Some(kube::Error::Api(status)) = of_kube(error) {
        return answer(status);
    }
    if let Some(status) = error.downcast_ref::<Status>() {
        return answer(status);
    }
    if let Some(kube::Error::Service(inner)) = of_kube(error) {
        return words(&**inner, depth.saturating_sub(1));
    }
    if let Some(error) = error.downcast_ref::<KubeconfigError>() {
        return of_kubeconfig(error);
    }
    let text = error.to_string();
    let Some(source) = error.source().filter(|_| depth > 0) else { return text };
    let inner = words(source, depth - 1);
    // hyper's own words say less than their cause.
    if text == "client error (Connect)" {
        return inner;
    }
    // Many an error prints its source itself, as people see it or as Rust does.
    for printed in [source.to_string(), format!("{source:?}")] {
        if !printed.is_empty() && text.contains(&printed) {
            return text.replacen(&printed, &inner, 1);
        }
    }
    if text.contains(&inner) { text } else { format!("{text}: {inner}") }
}

/// kube shows paths as Rust does, in quotes of its own, and a mistake in YAML as a picture of some lines.
fn of_kubeconfig(error: &KubeconfigError) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.replace("error: line", "line").replace("'\"", "\"").replace("\"'", "\"")
}

fn answer(status: &Status) -> String {
    let mut text = if status.message.is_empty() { "the API server refused".to_owned() } else { status.message.clone() };
    let code = (status.code != 0).then(|| status.code.to_string());
    let reason = Some(status.reason.clone()).filter(|reason| !reason.is_empty());
    let why: Vec<_> = reason.into_iter().chain(code).collect();
    if !why.is_empty() {
        text = format!("{text} ({})", why.join(", "));
    }
    text
}

#[cfg(test)]
mod tests;
