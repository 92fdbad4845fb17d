//! Variables, and the expansion of `$(NAME)` in values, commands and arguments.

use std::collections::BTreeMap;

/// The limit for all variables and arguments of a process together: Linux's default. References may be nested,
/// so that without a limit a short manifest could use any amount of memory.
const MAX_ENVIRONMENT_BYTES: usize = 2 << 20;

/// The variables and arguments exceed the limit of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "environment variables and arguments exceed {MAX_ENVIRONMENT_BYTES} bytes; `enableServiceLinks: false` omits the variables of Services"
)]
pub struct TooLong;

/// Variables by name. There is no `Debug`, since values may be secrets.
pub struct EnvVariables {
    values: BTreeMap<String, String>,
    remaining: usize,
}

impl Default for EnvVariables {
    fn default() -> Self {
        Self { values: BTreeMap::new(), remaining: MAX_ENVIRONMENT_BYTES }
    }
}

impl EnvVariables {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.values.iter()
    }

    /// Sets a variable.
    ///
    /// # Errors
    /// If the limit is exceeded.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) -> Result<(), TooLong> {
        let name = name.into();
        let value = value.into();
        self.reserve(name.len() + value.len())?;
        self.values.insert(name, value);
        Ok(())
    }

    /// Expands `$(NAME)`. `$$` is a dollar sign; a reference to an undefined variable is left unchanged.
    ///
    /// # Errors
    /// If the limit is exceeded.
    pub fn expand(&mut self, text: &str) -> Result<String, TooLong> {
        self.reserve(text.len())?;
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            expanded.push_str(before);
            rest = match after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
                Some((name, after)) => {
                    self.append_reference(name, &mut expanded)?;
                    after
                }
                None => {
                    expanded.push('$');
                    after.strip_prefix('$').unwrap_or(after)
                }
            };
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn append_reference(&mut self, name: &str, expanded: &mut String) -> Result<(), TooLong> {
        let Some(value) = self.values.get(name) else {
            expanded.extend(["$(", name, ")"]);
            return Ok(());
        };
        self.remaining = self.remaining.checked_sub(value.len()).ok_or(TooLong)?;
        expanded.push_str(value);
        Ok(())
    }

    fn reserve(&mut self, length: usize) -> Result<(), TooLong> {
        self.remaining = self.remaining.checked_sub(length).ok_or(TooLong)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
