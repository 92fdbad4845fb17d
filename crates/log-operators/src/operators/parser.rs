//! Operators that read a structure from a text: what all have in common, and the short ones.

use kubewake_config::{
    RegexPattern,
    file_log::{
        RecordField,
        operator::{CsvFormat, ParserConfig, ParserFormat, SeverityParse, SyslogFormat, TraceParse},
    },
};

use super::{
    RecordError, csv, interpret,
    interpret::TimeOperator,
    key_value,
    syslog::SyslogParser,
    transform::{self, missing},
    uri,
};
use crate::{
    entry::LogEntry,
    field::{self, FoundValue},
    json::{self, JsonNumbers},
    value::{LogMap, LogValue},
};

/// A parser with the parsers that run after it.
pub(super) struct ParserOperator {
    format: TextParser,
    from: RecordField,
    to: RecordField,
    body: Option<RecordField>,
    after: Interpreters,
}

/// What is read from the fields that a parser found.
pub(super) struct Interpreters {
    timestamp: Option<TimeOperator>,
    severity: Option<SeverityParse>,
    trace: Option<TraceParse>,
    scope_name: Option<RecordField>,
}

enum TextParser {
    Json(JsonNumbers),
    JsonArray(Option<Vec<String>>),
    Regex(RegexPattern),
    KeyValue { delimiter: Vec<u8>, pair_delimiter: Vec<u8> },
    Csv(CsvFormat),
    Uri,
    Syslog(SyslogParser),
}

impl Interpreters {
    pub(super) fn new(config: &ParserConfig) -> Self {
        Self {
            timestamp: config.timestamp.as_ref().map(TimeOperator::new),
            severity: config.severity.clone(),
            trace: config.trace.clone(),
            scope_name: config.scope_name.clone(),
        }
    }

    /// Runs all of them, even if one fails.
    pub(super) fn apply(&self, entry: &mut LogEntry) -> Result<(), RecordError> {
        let timestamp = self.timestamp.as_ref().map_or(Ok(()), |time| time.apply(entry));
        let severity = self.severity.as_ref().map_or(Ok(()), |parse| interpret::severity(parse, entry));
        let trace = self.trace.as_ref().map_or(Ok(()), |parse| interpret::trace(parse, entry));
        let scope_name = self.scope_name.as_ref().map_or(Ok(()), |from| interpret::scope_name(from, entry));
        timestamp.and(severity).and(trace).and(scope_name)
    }
}

impl ParserOperator {
    pub(super) fn new(config: &ParserConfig) -> Self {
        let format = match &config.format {
            ParserFormat::Json { keeps_integers: true } => TextParser::Json(JsonNumbers::Integers),
            ParserFormat::JsonArray { header } => TextParser::JsonArray(header.clone()),
            ParserFormat::Regex(pattern) => TextParser::Regex(pattern.clone()),
            ParserFormat::KeyValue { delimiter, pair_delimiter } => TextParser::KeyValue {
                delimiter: delimiter.clone().into_bytes(),
                pair_delimiter: pair_delimiter.clone().into_bytes(),
            },
            ParserFormat::Csv(format) => TextParser::Csv(format.clone()),
            ParserFormat::Uri => TextParser::Uri,
            ParserFormat::Syslog(format) => TextParser::Syslog(syslog(format, config)),
            // A container has an operator of its own.
            ParserFormat::Json { keeps_integers: false } | ParserFormat::Container(_) => {
                TextParser::Json(JsonNumbers::Floats)
            }
        };
        Self {
            format,
            from: config.from.clone(),
            to: config.to.clone(),
            body: config.body.clone(),
            after: Interpreters::new(config),
        }
    }

    pub(super) fn apply(&self, entry: &mut LogEntry) -> Result<(), RecordError> {
        let text = match field::get(entry, &self.from).ok_or_else(|| missing(&self.from))? {
            FoundValue::Value(LogValue::Text(text)) => text,
            other => {
                let value = other.to_value();
                return Err(RecordError::new(format!("`{}` is {} and no text", self.from, value.type_name())));
            }
        };
        if let TextParser::Syslog(parser) = &self.format {
            let message = parser.parse(text, entry.observed)?;
            field::set(entry, &self.to, LogValue::Map(message.values))?;
            self.finish(entry)?;
            if let Some(time) = message.timestamp {
                entry.timestamp = time;
            }
            if let Some((number, text)) = message.severity {
                entry.severity_number = number;
                entry.severity_text = text.into();
            }
            return Ok(());
        }
        let value = self.parse(text, entry)?;
        field::set(entry, &self.to, value)?;
        self.finish(entry)
    }

    fn finish(&self, entry: &mut LogEntry) -> Result<(), RecordError> {
        if let Some(body) = &self.body
            && let Some(value) = field::get(entry, body).map(|found| found.to_value())
        {
            entry.body = value;
        }
        self.after.apply(entry)
    }

    fn parse(&self, text: &[u8], entry: &LogEntry) -> Result<LogValue, RecordError> {
        match &self.format {
            TextParser::Json(numbers) => json_object(text, *numbers),
            TextParser::JsonArray(header) => json_array(text, header.as_deref()),
            TextParser::Regex(pattern) => groups(text, pattern),
            TextParser::KeyValue { delimiter, pair_delimiter } => key_value::parse(text, delimiter, pair_delimiter),
            TextParser::Csv(format) => csv::parse(text, format, entry),
            TextParser::Uri => uri::parse(text),
            TextParser::Syslog(_) => Ok(transform::no_values()),
        }
    }
}

fn syslog(format: &SyslogFormat, config: &ParserConfig) -> SyslogParser {
    SyslogParser::new(format, config.timestamp.is_none())
}

pub(super) fn json_error(error: &json::JsonError) -> RecordError {
    RecordError::new(format!("the text is not JSON: {} at byte {}", error.problem, error.offset))
}

/// An object. `null` has no keys, as in the Collector.
pub(super) fn json_object(text: &[u8], numbers: JsonNumbers) -> Result<LogValue, RecordError> {
    match json::parse(text, numbers).map_err(|error| json_error(&error))? {
        LogValue::Map(map) => Ok(LogValue::Map(map)),
        LogValue::Null => Ok(transform::no_values()),
        other => Err(RecordError::new(format!("the text is {} in JSON and no object", other.type_name()))),
    }
}

fn json_array(text: &[u8], header: Option<&[String]>) -> Result<LogValue, RecordError> {
    let LogValue::List(items) = json::parse(text, JsonNumbers::Integers).map_err(|error| json_error(&error))? else {
        return Err(RecordError::new("the text is no array in JSON"));
    };
    let Some(header) = header else { return Ok(LogValue::List(items)) };
    if header.len() != items.len() {
        return Err(RecordError::new(format!("the array has {} items and not {}", items.len(), header.len())));
    }
    Ok(LogValue::Map(header.iter().cloned().zip(items).collect()))
}

/// The named groups of an expression. A group that took no part is an empty text.
fn groups(text: &[u8], pattern: &RegexPattern) -> Result<LogValue, RecordError> {
    let captures = pattern.regex().captures(text).ok_or_else(|| RecordError::new("the expression does not match"))?;
    let mut values = LogMap::new();
    for name in pattern.groups().flatten() {
        let found = captures.name(name).map(|found| found.as_bytes().to_vec());
        values.insert(name.to_owned(), LogValue::Text(found.unwrap_or_default()));
    }
    Ok(LogValue::Map(values))
}
