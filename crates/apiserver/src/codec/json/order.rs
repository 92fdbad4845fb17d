//! Problems in the order of the text that they were found in.

use std::collections::HashMap;

use super::{Error, MAX_DEPTH, scan::Scanner};

/// Paths longer than this are not looked for, so that hashing them stays cheap whatever a body holds.
const MAX_PATH: usize = 1024;

/// Sorts problems by where their fields stand in a body: kube-apiserver tells them in that order, and a value no longer knows it.
///
/// `path` says which field a problem is about. What is not found goes to the end; the order of the rest does not change.
pub fn in_order_of<T>(body: &[u8], problems: &mut [T], path: impl Fn(&T) -> &str) {
    if problems.len() < 2 {
        return;
    }
    let wanted = problems.iter().map(|problem| path(problem).to_owned()).filter(|path| path.len() <= MAX_PATH);
    let mut places = Places {
        scan: Scanner::new(body),
        path: String::new(),
        places: wanted.map(|path| (path, usize::MAX)).collect(),
        seen: 0,
    };
    // A body that was decoded has no error; of another, the part before it counts.
    _ = places.value(0);
    problems.sort_by_key(|problem| places.places.get(path(problem)).copied().unwrap_or(usize::MAX));
}

struct Places<'i> {
    scan: Scanner<'i>,
    path: String,
    places: HashMap<String, usize>,
    seen: usize,
}

impl Places<'_> {
    fn value(&mut self, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(Error::Depth);
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

    fn object(&mut self, depth: usize) -> Result<(), Error> {
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
            self.note(again);
            self.value(depth + 1)?;
            self.path.truncate(outer);
            more = self.scan.next_key()?;
        }
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<(), Error> {
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

    /// A key that is there again is told where it is there again.
    fn note(&mut self, again: bool) {
        if self.path.len() <= MAX_PATH
            && let Some(place) = self.places.get_mut(&self.path)
            && (*place == usize::MAX || again)
        {
            *place = self.seen;
        }
    }
}
