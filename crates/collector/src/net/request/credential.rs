//! What the authenticators share: values from files, and headers that never change.

use std::{fs, path::Path};

use http::{HeaderName, HeaderValue};
use kubewake_config::mounted;

use super::sensitive;
use crate::{
    components::BuildError,
    extension::{ClientAuth, HeadersFuture},
};

/// The content of a file, without the line break at its end.
pub(crate) fn read(path: &Path) -> Result<String, BuildError> {
    let text = fs::read_to_string(mounted(path))
        .map_err(|error| BuildError(format!("{} cannot be read: {error}", path.display())))?;
    match text.trim() {
        "" => Err(BuildError(format!("{} is empty", path.display()))),
        text => Ok(text.to_owned()),
    }
}

/// A value that stands in a file or, without one, in the document.
pub(crate) fn value(text: &str, file: Option<&Path>) -> Result<String, BuildError> {
    match file {
        Some(path) => read(path),
        None => Ok(text.to_owned()),
    }
}

/// Compares without telling by its time how much is equal.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}

/// The same header for every request.
pub(crate) struct Fixed {
    name: HeaderName,
    value: HeaderValue,
}

impl Fixed {
    pub(crate) fn new(name: HeaderName, value: &str) -> Result<Self, BuildError> {
        let value = sensitive(value)
            .ok_or_else(|| BuildError(format!("the credentials hold what header \"{name}\" cannot carry")))?;
        Ok(Self { name, value })
    }
}

impl ClientAuth for Fixed {
    fn headers(&self) -> HeadersFuture<'_> {
        Box::pin(std::future::ready(Ok(vec![(self.name.clone(), self.value.clone())])))
    }
}
