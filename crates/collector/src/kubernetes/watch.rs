//! Lists objects, then watches them, for ever.

use std::{fmt::Write, time::Duration};

use http_body_util::BodyExt;
use serde::Deserialize;
use tokio::time::Instant;

use super::{ApiClient, ApiError, ObjectMetadata, WatchedObject, or_default};

/// Objects of a list page: few enough for large objects, and enough that there are few pages.
const PAGE_LIMIT: u32 = 250;
/// Limit of one watch event. An object has at most 1.5 MiB, and escapes may lengthen it.
const MAX_EVENT_BYTES: usize = 8 << 20;
/// A watch that is silent for this much longer than its announced duration is dead.
const WATCH_SILENCE_GRACE: Duration = Duration::from_secs(30);
/// The first pause after a failure, and the longest.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub(crate) struct WatchQuery {
    /// `/api/v1/pods`
    pub(crate) path: String,
    /// `labelSelector`; empty for all.
    pub(crate) labels: String,
    /// `fieldSelector`; empty for all.
    pub(crate) fields: String,
    /// Duration of one watch, before it continues in another.
    pub(crate) duration: Duration,
    /// Whether only `metadata` is requested. A server that supports it omits everything else.
    pub(crate) metadata_only: bool,
}

#[derive(Debug)]
pub(crate) enum ObjectEvent<T> {
    ListStarted,
    /// An object exists or has changed.
    Applied(T),
    Deleted(T),
    /// The list is complete: objects that were not in it are deleted.
    ListCompleted,
    /// The connection works again, and changes continue from where it broke off.
    Resumed,
    /// A request failed or the connection broke off. It will be retried.
    Failed(ApiError),
}

#[derive(Deserialize)]
#[serde(bound = "T: WatchedObject")]
struct ObjectList<T: WatchedObject> {
    #[serde(default)]
    metadata: ListMetadata,
    #[serde(default = "Vec::new", deserialize_with = "or_default")]
    items: Vec<T>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ListMetadata {
    resource_version: String,
    #[serde(rename = "continue")]
    next: String,
}

/// The type of an event, which determines how to read the rest.
#[derive(Deserialize)]
struct EventType {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct EventObject<T> {
    object: T,
}

/// The part of a bookmark or an error that other objects have, too.
#[derive(Deserialize, Default)]
#[serde(default)]
struct BookmarkOrError {
    metadata: ObjectMetadata,
    code: u16,
    message: String,
}

/// Reports existing objects and changes to `listener`, as long as it returns that it wants more.
pub(crate) async fn watch<T: WatchedObject>(
    client: &ApiClient,
    query: &WatchQuery,
    mut listener: impl FnMut(ObjectEvent<T>) -> bool,
) {
    let mut pause = INITIAL_BACKOFF;
    let mut version: Option<String> = None;
    let mut failed = false;
    loop {
        let began = Instant::now();
        let was_watch = version.is_some();
        let result = match &version {
            None => list_objects(client, query, &mut listener).await,
            Some(since) => watch_from(client, query, (since.clone(), failed), &mut listener).await,
        };
        failed = result.is_err();
        match result {
            Ok(Some(next)) => {
                version = Some(next);
                pause = INITIAL_BACKOFF;
                // A server that ends every watch at once must not be asked without a pause.
                if was_watch && began.elapsed() < INITIAL_BACKOFF {
                    tokio::time::sleep(INITIAL_BACKOFF).await;
                }
            }
            Ok(None) => return,
            Err(WatchFailure { error, version: reached }) => {
                // A watch that broke off resumes from where it was. One whose version is too old lists again,
                // as does one that was refused: the permissions may have changed.
                version = reached.filter(|_| matches!(error, ApiError::Connection(_)));
                if !matches!(error, ApiError::Expired) && !listener(ObjectEvent::Failed(error)) {
                    return;
                }
                let jitter = 0.5 + fastrand::f64() / 2.0;
                tokio::time::sleep(pause.mul_f64(jitter)).await;
                pause = (pause * 2).min(MAX_BACKOFF);
            }
        }
    }
}

/// Why a list or a watch ended, and the version it reached.
struct WatchFailure {
    error: ApiError,
    version: Option<String>,
}

impl From<ApiError> for WatchFailure {
    fn from(error: ApiError) -> Self {
        Self { error, version: None }
    }
}

/// Lists all pages; returns the version to watch from, or `None` if the listener wants no more.
async fn list_objects<T: WatchedObject>(
    client: &ApiClient,
    query: &WatchQuery,
    listener: &mut impl FnMut(ObjectEvent<T>) -> bool,
) -> Result<Option<String>, WatchFailure> {
    let mut next = String::new();
    listener(ObjectEvent::ListStarted);
    loop {
        let mut path = query.path(&[("limit", &PAGE_LIMIT.to_string())]);
        if !next.is_empty() {
            let _ = write!(path, "&continue={}", escaped(&next));
        }
        let page: ObjectList<T> = client.get(&path, query.accept(true)).await?;
        if !page.items.into_iter().all(|item| listener(ObjectEvent::Applied(item))) {
            return Ok(None);
        }
        if page.metadata.next.is_empty() {
            return Ok(listener(ObjectEvent::ListCompleted).then_some(page.metadata.resource_version));
        }
        next = page.metadata.next;
    }
}

/// Watches until the server ends the watch; returns the version, or `None` if the listener wants no more.
async fn watch_from<T: WatchedObject>(
    client: &ApiClient,
    query: &WatchQuery,
    (mut version, resumed): (String, bool),
    listener: &mut impl FnMut(ObjectEvent<T>) -> bool,
) -> Result<Option<String>, WatchFailure> {
    let seconds = query.duration.as_secs().max(1).to_string();
    let asked = [
        ("watch", "true"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", &seconds),
        ("resourceVersion", &version),
    ];
    let mut body = client.open(&query.path(&asked), query.accept(false)).await?;
    if resumed && !listener(ObjectEvent::Resumed) {
        return Ok(None);
    }
    let mut buffer: Vec<u8> = Vec::new();
    loop {
        let ended = |what: String, version: &String| {
            Err(WatchFailure { error: ApiError::Connection(what), version: Some(version.clone()) })
        };
        let data = match tokio::time::timeout(query.duration + WATCH_SILENCE_GRACE, body.frame()).await {
            Err(_) => return ended("the watch received no data in time".into(), &version),
            Ok(None) => return Ok(Some(version)),
            Ok(Some(Err(error))) => return ended(format!("the watch was interrupted: {error}"), &version),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        buffer.extend_from_slice(&data);
        let mut rest = buffer.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, behind) = rest.split_at_checked(end).unwrap_or_default();
            rest = behind.get(1..).unwrap_or_default();
            if !line.trim_ascii().is_empty() && !handle_event(line, &mut version, listener)? {
                return Ok(None);
            }
        }
        buffer = rest.to_vec();
        if buffer.len() > MAX_EVENT_BYTES {
            return Err(ApiError::Answer(format!("an event is larger than {MAX_EVENT_BYTES} bytes")).into());
        }
    }
}

/// Whether an event can be read.
#[cfg(feature = "fuzzing")]
pub(crate) fn reads_event<T: WatchedObject>(line: &[u8]) -> bool {
    handle_event::<T>(line, &mut String::new(), &mut |_| true).is_ok()
}

/// Reads one event; false if the listener wants no more.
fn handle_event<T: WatchedObject>(
    line: &[u8],
    version: &mut String,
    listener: &mut impl FnMut(ObjectEvent<T>) -> bool,
) -> Result<bool, WatchFailure> {
    let unreadable = |error: serde_json::Error| ApiError::Answer(error.to_string());
    let EventType { kind } = serde_json::from_slice(line).map_err(unreadable)?;
    if matches!(kind.as_str(), "BOOKMARK" | "ERROR") {
        let EventObject::<BookmarkOrError> { object: marker } = serde_json::from_slice(line).map_err(unreadable)?;
        if kind == "ERROR" {
            return Err(match marker.code {
                410 => ApiError::Expired.into(),
                _ => ApiError::Answer(marker.message.chars().take(300).collect()).into(),
            });
        }
        *version = marker.metadata.resource_version;
        return Ok(true);
    }
    let EventObject::<T> { object } = serde_json::from_slice(line).map_err(unreadable)?;
    version.clone_from(&object.metadata().resource_version);
    Ok(match kind.as_str() {
        "DELETED" => listener(ObjectEvent::Deleted(object)),
        _ => listener(ObjectEvent::Applied(object)),
    })
}

impl WatchQuery {
    /// The usual case: all objects at a path.
    pub(crate) fn all(path: impl Into<String>) -> Self {
        // Five to ten minutes, as other clients use.
        let duration = Duration::from_secs(300 + fastrand::u64(..240));
        Self { path: path.into(), labels: String::new(), fields: String::new(), duration, metadata_only: false }
    }

    fn path(&self, more: &[(&str, &str)]) -> String {
        let own = [("labelSelector", self.labels.as_str()), ("fieldSelector", self.fields.as_str())];
        let given = own.iter().chain(more).filter(|(_, value)| !value.is_empty());
        let text: Vec<String> = given.map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        format!("{}?{}", self.path, text.join("&"))
    }

    fn accept(&self, list: bool) -> &'static str {
        match (self.metadata_only, list) {
            (false, _) => "application/json",
            (true, true) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
            (true, false) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        }
    }
}

/// Percent-encodes a value for a query.
fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}
