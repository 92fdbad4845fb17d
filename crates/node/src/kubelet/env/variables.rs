//! Variables by name, and `$(NAME)` in values, commands and arguments.

use std::collections::BTreeMap;

/// All variables and arguments of a process together: what Linux gives it with the usual limits. References can refer to references, so
/// that without an end a short manifest could ask for any amount of memory.
const ROOM: usize = 2 << 20;

/// The variables and arguments are more than a process can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "variables and arguments are longer than {ROOM} bytes; `enableServiceLinks: false` leaves those of Services out"
)]
pub struct TooLong;

/// Variables by name. `Debug` is not there: values may be secrets.
pub struct Variables {
    values: BTreeMap<String, String>,
    room: usize,
}

impl Default for Variables {
    fn default() -> Self {
        Self { values: BTreeMap::new(), room: ROOM }
    }
}

impl Variables {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.values.iter()
    }

    /// Sets a variable.
    ///
    /// # Errors
    /// If there is no room for it.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) -> Result<(), TooLong> {
        let (name, value) = (name.into(), value.into());
        self.take(name.len() + value.len())?;
        self.values.insert(name, value);
        Ok(())
    }

    /// Puts the values of variables where `$(NAME)` stands. `$$` is a dollar sign; a reference to what is not there stays as it is.
    ///
    /// # Errors
    /// If there is no room for the result.
    pub fn expand(&mut self, text: &str) -> Result<String, TooLong> {
        self.take(text.len())?;
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            expanded.push_str(before);
            rest = match after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
                Some((name, after)) => {
                    self.refer(name, &mut expanded)?;
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

    fn refer(&mut self, name: &str, expanded: &mut String) -> Result<(), TooLong> {
        let Some(value) = self.values.get(name) else {
            expanded.extend(["$(", name, ")"]);
            return Ok(());
        };
        self.room = self.room.checked_sub(value.len()).ok_or(TooLong)?;
        expanded.push_str(value);
        Ok(())
    }

    fn take(&mut self, length: usize) -> Result<(), TooLong> {
        self.room = self.room.checked_sub(length).ok_or(TooLong)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
