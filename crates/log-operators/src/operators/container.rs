//! `container`: the lines of container runtimes.
//!
//! *Guarantees*: parts of a line are joined separately for each file and stream. Unlike in the Collector they are also
//! joined if the path of the file says nothing about a pod.

use std::time::Duration;

use kubewake_config::file_log::{
    Expression, FieldRoot, RecordField,
    operator::{ContainerFormat, ContainerRuntime, ParserConfig, ParserFormat, RecombineConfig},
};

use super::{
    RecordError, Verdict,
    parser::{Interpreters, json_object},
    recombine::{Boundary, Recombiner},
    syslog::rfc3339,
    transform::missing,
};
use crate::{
    entry::LogEntry,
    field::{self, FoundValue},
    json::JsonNumbers,
    value::{LogMap, LogValue},
};

/// The attribute with the path of the file.
const PATH_ATTRIBUTE: &str = "log.file.path";
/// How long parts wait for their end, as in the Collector.
const FLUSH_PERIOD: Duration = Duration::from_secs(5);
/// The most files and streams with open lines, as in the Collector.
const MAX_SOURCES: usize = 1000;
/// The most bytes of a joined line if there is no other bound.
const MAX_LOG_BYTES: usize = 64 << 20;

pub(super) struct ContainerOperator {
    format: ContainerFormat,
    from: RecordField,
    to: RecordField,
    body: Option<RecordField>,
    after: Interpreters,
    recombiner: Recombiner,
}

/// A line of a container runtime that follows the Container Runtime Interface.
struct CriLine<'t> {
    time: &'t [u8],
    stream: &'t [u8],
    tags: &'t [u8],
    content: &'t [u8],
}

/// What says which parts belong together.
struct StreamTags {
    stream: Vec<u8>,
    /// The tags, of which the first one is `F` for the end of a line.
    tags: Vec<u8>,
}

impl ContainerOperator {
    /// The operator, if the settings are those of `container`.
    pub(super) fn from_config(config: &ParserConfig) -> Option<Self> {
        let ParserFormat::Container(format) = &config.format else { return None };
        let recombine = RecombineConfig {
            boundary: Expression::parse_condition("false").ok()?,
            boundary_is_first: false,
            combine_field: RecordField::BODY,
            combine_with: String::new(),
            source_identifier: RecordField::new(FieldRoot::Attributes, PATH_ATTRIBUTE),
            keeps_newest: false,
            max_batch_size: None,
            max_unmatched_batch_size: None,
            max_log_size: if format.max_log_size == 0 { MAX_LOG_BYTES } else { format.max_log_size },
            max_sources: MAX_SOURCES,
            force_flush_period: FLUSH_PERIOD,
        };
        Some(Self {
            format: format.clone(),
            from: config.from.clone(),
            to: config.to.clone(),
            body: config.body.clone(),
            after: Interpreters::new(config),
            recombiner: Recombiner::new(recombine),
        })
    }

    pub(super) fn recombiner(&self) -> &Recombiner {
        &self.recombiner
    }

    pub(super) fn recombiner_mut(&mut self) -> &mut Recombiner {
        &mut self.recombiner
    }

    pub(super) fn process(&mut self, mut entry: LogEntry, joined: &mut Vec<LogEntry>) -> Verdict {
        let line = match self.read(&entry) {
            Ok(line) => line,
            Err(error) => return Verdict::Fail(entry, error),
        };
        let origin = match self.apply(&mut entry, line) {
            Ok(found) => found,
            Err(error) => return Verdict::Fail(entry, error),
        };
        let metadata = if self.format.adds_metadata { add_metadata(&mut entry) } else { Ok(()) };
        let Some(StreamTags { stream, tags }) = origin else {
            return Verdict::from_result(entry, metadata);
        };
        let is_last = tags.split(|byte| *byte == b':').next() == Some(b"F");
        let path = match entry.attributes.get(PATH_ATTRIBUTE) {
            Some(LogValue::Text(path)) => path.as_slice(),
            _ => &[],
        };
        let source = [&stream, b" ".as_slice(), path].concat();
        match (metadata, is_last) {
            // A whole line with no part before it is passed on as it is.
            (Ok(()), true) if self.recombiner.held_bytes() == 0 => Verdict::Forward(entry),
            (Err(error), true) if self.recombiner.held_bytes() == 0 => Verdict::Fail(entry, error),
            (_, true) => self.recombiner.join(entry, source, Boundary::Last, joined),
            (_, false) => self.recombiner.join(entry, source, Boundary::None, joined),
        }
    }

    /// The values of a line: time, stream, tags and content by their names in the Collector.
    fn read(&self, entry: &LogEntry) -> Result<LogMap, RecordError> {
        let text = match field::get(entry, &self.from).ok_or_else(|| missing(&self.from))? {
            FoundValue::Value(LogValue::Text(text)) => text.as_slice(),
            _ => return Err(RecordError::new(format!("`{}` is no text", self.from))),
        };
        let is_docker = match self.format.runtime {
            None => text.starts_with(b"{"),
            Some(runtime) => runtime == ContainerRuntime::Docker,
        };
        if is_docker {
            return match json_object(text, JsonNumbers::Floats)? {
                LogValue::Map(map) => Ok(map),
                _ => Ok(LogMap::new()),
            };
        }
        let line = cri_line(text).filter(|line| match self.format.runtime {
            Some(ContainerRuntime::Containerd) => line.time.ends_with(b"Z"),
            Some(ContainerRuntime::Crio) => !line.time.contains(&b'Z'),
            _ => true,
        });
        let line = line.ok_or_else(|| RecordError::new("the line is not one of a container runtime"))?;
        let pairs = [("time", line.time), ("stream", line.stream), ("logtag", line.tags), ("log", line.content)];
        Ok(pairs.into_iter().map(|(key, value)| (key.to_owned(), LogValue::Text(value.to_vec()))).collect())
    }

    /// Gives a record the values of its line. Returns the stream and the tags of a line that may be a part.
    fn apply(&self, entry: &mut LogEntry, line: LogMap) -> Result<Option<StreamTags>, RecordError> {
        field::set(entry, &self.to, LogValue::Map(line))?;
        if let Some(body) = &self.body
            && let Some(value) = field::get(entry, body).map(|found| found.to_value())
        {
            entry.body = value;
        }
        self.after.apply(entry)?;
        let Some(LogValue::Text(time)) = entry.attributes.get("time") else {
            return Err(RecordError::new("the line has no time"));
        };
        entry.timestamp = rfc3339(time)?;
        entry.attributes.remove("time");
        let mut take = |key: &str| {
            entry.attributes.remove(key).ok_or_else(|| RecordError::new(format!("the line has no `{key}`")))
        };
        let content = take("log")?;
        let stream = take("stream")?;
        field::set(entry, &RecordField::BODY, content)?;
        let found = match (&stream, entry.attributes.get("logtag")) {
            (LogValue::Text(stream), Some(LogValue::Text(tags))) => {
                Some(StreamTags { stream: stream.clone(), tags: tags.clone() })
            }
            _ => None,
        };
        entry.attributes.insert("log.iostream".to_owned(), stream);
        // A Docker line may have any other key, even this one.
        Ok(found.filter(|_| !self.is_docker_only()))
    }

    fn is_docker_only(&self) -> bool {
        self.format.runtime == Some(ContainerRuntime::Docker)
    }
}

/// Splits a line at its first spaces; `None` if it is another kind of line.
fn cri_line(text: &[u8]) -> Option<CriLine<'_>> {
    if text.contains(&b'\n') {
        return None;
    }
    let mut parts = text.splitn(4, |byte| *byte == b' ');
    let time = parts.next().filter(|time| !time.is_empty())?;
    let stream = parts.next().filter(|stream| matches!(*stream, b"stdout" | b"stderr"))?;
    let tags = parts.next()?;
    Some(CriLine { time, stream, tags, content: parts.next().unwrap_or_default() })
}

/// What the path of a container's log says: namespace, pod, uid, container and restart count.
///
/// `None` if it is not `…/NAMESPACE_POD_UID/CONTAINER/RESTARTS.log` with a uid of hexadecimal digits and dashes, and a
/// container without dots.
pub fn parse_container_path(path: &str) -> Option<[(&'static str, &str); 5]> {
    let mut folders = path.rsplit('/');
    let restarts = folders.next()?.strip_suffix(".log")?;
    let container = folders.next()?;
    let pod_folder = folders.next()?;
    // Something has to stand before the folder of the pod.
    folders.next()?;
    let mut names = pod_folder.split('_');
    let (namespace, pod, uid) = (names.next()?, names.next()?, names.next()?);
    let is_uid = |c: char| c.is_ascii_digit() || matches!(c, 'a'..='f' | '-');
    let is_valid = names.next().is_none()
        && !namespace.is_empty()
        && !pod.is_empty()
        && !uid.is_empty()
        && uid.chars().all(is_uid)
        && !container.is_empty()
        && !container.contains(['.', '_'])
        && !restarts.is_empty()
        && restarts.bytes().all(|byte| byte.is_ascii_digit());
    is_valid.then_some([
        ("k8s.namespace.name", namespace),
        ("k8s.pod.name", pod),
        ("k8s.pod.uid", uid),
        ("k8s.container.name", container),
        ("k8s.container.restart_count", restarts),
    ])
}

/// Adds what the path of the file says to the resource.
fn add_metadata(entry: &mut LogEntry) -> Result<(), RecordError> {
    let Some(LogValue::Text(path)) = entry.attributes.get(PATH_ATTRIBUTE) else {
        return Err(RecordError::new("the record has no path of its file: set `include_file_path: true`"));
    };
    let path = String::from_utf8_lossy(path).into_owned();
    let found = parse_container_path(&path).ok_or_else(|| {
        RecordError::new(format!("the path {path:?} is not that of a container: NAMESPACE_POD_UID/CONTAINER/N.log"))
    })?;
    for (key, value) in found {
        entry.resource.insert(key.to_owned(), value.into());
    }
    Ok(())
}
