//! Helpers of the authenticators: values from files, and constant headers.

use std::{fs, path::Path};

use http::{HeaderName, HeaderValue};

use super::sensitive_value;
use crate::{
    components::BuildError,
    extension::{ClientAuth, HeadersFuture},
};

/// The content of a file, without the line break at its end.
pub(crate) fn read_credential_file(path: &Path) -> Result<String, BuildError> {
    let text =
        fs::read_to_string(path).map_err(|error| BuildError(format!("failed to read {}: {error}", path.display())))?;
    match text.trim() {
        "" => Err(BuildError(format!("{} is empty", path.display()))),
        text => Ok(text.to_owned()),
    }
}

/// A value from a file or, without one, from the document.
pub(crate) fn file_or_inline(text: &str, file: Option<&Path>) -> Result<String, BuildError> {
    match file {
        Some(path) => read_credential_file(path),
        None => Ok(text.to_owned()),
    }
}

/// Compares in constant time.
pub(crate) fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}

/// The same header for every request.
pub(crate) struct StaticCredentials {
    name: HeaderName,
    value: HeaderValue,
}

impl StaticCredentials {
    pub(crate) fn new(name: HeaderName, value: &str) -> Result<Self, BuildError> {
        let value = sensitive_value(value)
            .ok_or_else(|| BuildError(format!("the credentials are not a valid value of header \"{name}\"")))?;
        Ok(Self { name, value })
    }
}

impl ClientAuth for StaticCredentials {
    fn headers(&self) -> HeadersFuture<'_> {
        Box::pin(std::future::ready(Ok(vec![(self.name.clone(), self.value.clone())])))
    }
}
