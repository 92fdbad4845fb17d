//! `csv_parser`: one row of a table.

use kubewake_config::file_log::operator::{CsvFormat, CsvHeader};

use super::RecordError;
use crate::{
    entry::LogEntry,
    value::{LogMap, LogValue},
};

/// The most columns of a row.
const MAX_COLUMNS: usize = 10_000;

/// The columns of a row by their names.
pub(super) fn parse(text: &[u8], format: &CsvFormat, entry: &LogEntry) -> Result<LogValue, RecordError> {
    let mut delimiter = [0; 4];
    let delimiter: &[u8] = format.delimiter.encode_utf8(&mut delimiter).as_bytes();
    let columns = if format.ignore_quotes {
        unquoted(text, delimiter)?
    } else {
        CsvReader { rest: text, delimiter, lazy: format.lazy_quotes }.row()?
    };
    let dynamic: Vec<String>;
    let names = match &format.header {
        CsvHeader::Names(names) => names,
        CsvHeader::Attribute(attribute) => {
            let Some(LogValue::Text(header)) = entry.attributes.get(attribute) else {
                return Err(RecordError::new(format!("the attribute {attribute:?} is missing or no text")));
            };
            dynamic = String::from_utf8_lossy(header).split(format.header_delimiter).map(str::to_owned).collect();
            &dynamic
        }
    };
    if names.len() != columns.len() {
        return Err(RecordError::new(format!("the row has {} columns and not {}", columns.len(), names.len())));
    }
    let values = names.iter().cloned().zip(columns.into_iter().map(LogValue::Text));
    Ok(LogValue::Map(values.collect::<LogMap>()))
}

fn unquoted(text: &[u8], delimiter: &[u8]) -> Result<Vec<Vec<u8>>, RecordError> {
    let mut columns = Vec::new();
    let mut start = 0;
    for place in memchr::memmem::find_iter(text, delimiter) {
        columns.push(text.get(start..place).unwrap_or_default().to_vec());
        check_count(&columns)?;
        start = place + delimiter.len();
    }
    columns.push(text.get(start..).unwrap_or_default().to_vec());
    Ok(columns)
}

fn check_count(columns: &[Vec<u8>]) -> Result<(), RecordError> {
    if columns.len() > MAX_COLUMNS {
        Err(RecordError::new(format!("a row has more than {MAX_COLUMNS} columns")))
    } else {
        Ok(())
    }
}

struct CsvReader<'t> {
    rest: &'t [u8],
    delimiter: &'t [u8],
    /// `lazy_quotes`
    lazy: bool,
}

impl CsvReader<'_> {
    fn row(mut self) -> Result<Vec<Vec<u8>>, RecordError> {
        if self.rest.is_empty() {
            return Err(RecordError::new("the row is empty"));
        }
        let mut columns = Vec::new();
        loop {
            let (column, is_last) = match self.rest.strip_prefix(b"\"") {
                Some(rest) => {
                    self.rest = rest;
                    self.quoted()?
                }
                None => self.plain()?,
            };
            columns.push(column);
            check_count(&columns)?;
            if is_last {
                return Ok(columns);
            }
        }
    }

    /// A column without quotes around it, and whether it is the last one.
    fn plain(&mut self) -> Result<(Vec<u8>, bool), RecordError> {
        let end = memchr::memmem::find(self.rest, self.delimiter);
        let column = self.rest.get(..end.unwrap_or(self.rest.len())).unwrap_or_default();
        if !self.lazy && column.contains(&b'"') {
            return Err(RecordError::new("a quote stands within a column"));
        }
        let column = column.to_vec();
        self.rest = end.and_then(|end| self.rest.get(end + self.delimiter.len()..)).unwrap_or_default();
        Ok((column, end.is_none()))
    }

    /// A column after its opening quote, in which two quotes are one.
    fn quoted(&mut self) -> Result<(Vec<u8>, bool), RecordError> {
        let mut column = Vec::new();
        loop {
            let Some(place) = memchr::memchr(b'"', self.rest) else {
                if !self.lazy {
                    return Err(RecordError::new("a quote is not closed"));
                }
                column.extend_from_slice(self.rest);
                self.rest = &[];
                return Ok((column, true));
            };
            column.extend_from_slice(self.rest.get(..place).unwrap_or_default());
            self.rest = self.rest.get(place + 1..).unwrap_or_default();
            if let Some(rest) = self.rest.strip_prefix(b"\"") {
                column.push(b'"');
                self.rest = rest;
            } else if let Some(rest) = self.rest.strip_prefix(self.delimiter) {
                self.rest = rest;
                return Ok((column, false));
            } else if self.rest.is_empty() {
                return Ok((column, true));
            } else if self.lazy {
                column.push(b'"');
            } else {
                return Err(RecordError::new("something follows a quote"));
            }
        }
    }
}
