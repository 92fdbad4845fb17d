//! Sorts problems by their position in the body.

use std::collections::HashMap;

use super::{JsonDecodeError, MAX_DEPTH, scan::JsonScanner};

/// Longer paths are not looked up, so that hashing them stays cheap whatever a body contains.
const MAX_PATH_BYTES: usize = 1024;

/// Sorts problems by the positions of their fields in a body: kube-apiserver reports them in that order, which
/// a decoded value does not preserve.
///
/// `path` returns the field of a problem. Problems without a position come last; the order of equals does not
/// change.
pub fn sort_by_body_order<T>(body: &[u8], problems: &mut [T], path: impl Fn(&T) -> &str) {
    if problems.len() < 2 {
        return;
    }
    let wanted = problems.iter().map(|problem| path(problem).to_owned()).filter(|path| path.len() <= MAX_PATH_BYTES);
    let mut places = KeyPositions {
        scan: JsonScanner::new(body),
        path: String::new(),
        places: wanted.map(|path| (path, usize::MAX)).collect(),
        seen: 0,
    };
    // A decoded body has no error; of another one, the part before the error counts.
    _ = places.value(0);
    problems.sort_by_key(|problem| places.places.get(path(problem)).copied().unwrap_or(usize::MAX));
}

struct KeyPositions<'i> {
    scan: JsonScanner<'i>,
    path: String,
    places: HashMap<String, usize>,
    seen: usize,
}

impl KeyPositions<'_> {
    fn value(&mut self, depth: usize) -> Result<(), JsonDecodeError> {
        if depth > MAX_DEPTH {
            return Err(JsonDecodeError::Depth);
        }
        match self.scan.begin_value()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.scan.string().map(drop),
            b't' => self.scan.literal("true"),
            b'f' => self.scan.literal("false"),
            b'n' => self.scan.literal("null"),
            first => self.scan.number(first).map(drop),
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), JsonDecodeError> {
        let outer = self.path.len();
        let mut keys = HashMap::new();
        let mut more = self.scan.first_key()?;
        while more {
            let key = self.scan.string()?;
            self.scan.colon()?;
            if outer > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            self.seen += 1;
            let again = keys.insert(key, ()).is_some();
            self.record_position(again);
            self.value(depth + 1)?;
            self.path.truncate(outer);
            more = self.scan.next_key()?;
        }
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<(), JsonDecodeError> {
        let outer = self.path.len();
        let mut more = self.scan.first_item()?;
        let mut index = 0_usize;
        while more {
            self.path.push_str(&format!("[{index}]"));
            self.value(depth + 1)?;
            self.path.truncate(outer);
            more = self.scan.next_item()?;
            index += 1;
        }
        Ok(())
    }

    /// A duplicate key is reported at its second position.
    fn record_position(&mut self, again: bool) {
        if self.path.len() <= MAX_PATH_BYTES
            && let Some(place) = self.places.get_mut(&self.path)
            && (*place == usize::MAX || again)
        {
            *place = self.seen;
        }
    }
}
