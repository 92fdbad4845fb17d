//! `header`: the first lines of a file, which describe all of it.

use kubewake_config::{RegexPattern, file_log::FileHeader};

use crate::{
    chain::OperatorChain,
    entry::LogEntry,
    value::{LogMap, LogValue},
};

/// The most attributes that a header gives.
const MAX_ATTRIBUTES: usize = 1000;

/// Reads the header of one file, from its first line on.
pub struct HeaderReader {
    pattern: RegexPattern,
    chain: OperatorChain,
    attributes: LogMap,
    is_open: bool,
}

impl HeaderReader {
    pub fn new(settings: &FileHeader) -> Self {
        Self {
            pattern: settings.pattern.clone(),
            chain: OperatorChain::new(&settings.metadata_operators),
            attributes: LogMap::new(),
            is_open: true,
        }
    }

    /// Whether a line is part of the header, which ends with the first line that does not match.
    pub fn take(&mut self, line: &[u8]) -> bool {
        self.is_open = self.is_open && self.pattern.is_match(line);
        if self.is_open {
            let mut out = Vec::new();
            self.chain.process(LogEntry::new(LogValue::Text(line.to_vec())), &mut out);
            self.chain.flush_all(&mut out);
            let found = out.into_iter().flat_map(|entry| entry.attributes);
            self.attributes.extend(found.take(MAX_ATTRIBUTES.saturating_sub(self.attributes.len())));
        }
        self.is_open
    }

    /// Whether another line may be part of the header.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// The attributes that the records of the file have.
    pub fn attributes(&self) -> &LogMap {
        &self.attributes
    }
}

#[cfg(test)]
mod tests {
    use kubewake_config::file_log::OperatorGraph;

    use super::*;

    #[test]
    fn first_lines_that_match_give_attributes() {
        let operators = "[{type: key_value_parser, delimiter: ':', pair_delimiter: '#'}]";
        let settings = FileHeader {
            pattern: RegexPattern::new("^#").unwrap(),
            metadata_operators: OperatorGraph::from_yaml(operators).unwrap(),
        };
        let mut header = HeaderReader::new(&settings);
        let taken: Vec<bool> =
            ["#v: 7", "#w: 8", "line", "#x: 9"].iter().map(|line| header.take(line.as_bytes())).collect();
        assert_eq!(taken, [true, true, false, false]);
        let expected: LogMap = [("v".to_owned(), "7".into()), ("w".to_owned(), "8".into())].into();
        assert_eq!(*header.attributes(), expected);
    }
}
