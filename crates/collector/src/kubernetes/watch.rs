//! List, then watch, forever.

use std::{fmt::Write, time::Duration};

use http_body_util::BodyExt;
use serde::Deserialize;
use tokio::time::Instant;

use super::{ApiError, Client, Metadata, Object, or_default};

/// Objects of a page: few enough that a page of large ones is no burden, and many enough that there are few pages.
const PAGE: u32 = 250;
/// One event. An object has at most 1.5 MiB, and escapes may make it longer.
const MAX_EVENT: usize = 8 << 20;
/// A watch that says nothing for so much longer than it was to last is dead.
const GRACE: Duration = Duration::from_secs(30);
/// The first pause after a failure, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// What to watch.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    /// `/api/v1/pods`
    pub(crate) path: String,
    /// `labelSelector`; empty for all.
    pub(crate) labels: String,
    /// `fieldSelector`; empty for all.
    pub(crate) fields: String,
    /// How long one watch lasts, before it goes on in another.
    pub(crate) duration: Duration,
    /// Whether only `metadata` is wanted. A server that can leaves all else out.
    pub(crate) metadata_only: bool,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum Event<T> {
    /// A list begins.
    Begin,
    /// An object is there, or is another than before.
    Applied(T),
    /// An object is gone.
    Deleted(T),
    /// The list that began is complete: what it did not name is gone.
    Complete,
    /// The server can be asked again, and tells of changes from where it broke off.
    Resumed,
    /// The server could not be asked, or broke off. It will be asked again.
    Failed(ApiError),
}

#[derive(Deserialize)]
#[serde(bound = "T: Object")]
struct List<T: Object> {
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

/// What kind of event it is, which says how to read the rest.
#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Of<T> {
    object: T,
}

/// What a bookmark and an error have in common with other objects.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Marker {
    metadata: Metadata,
    code: u16,
    message: String,
}

/// Tells `listener` what is there and what happens, for as long as it says that it wants to hear more.
pub(crate) async fn watch<T: Object>(client: &Client, query: &Query, mut listener: impl FnMut(Event<T>) -> bool) {
    let mut pause = FIRST_PAUSE;
    let mut version: Option<String> = None;
    let mut failed = false;
    loop {
        let began = Instant::now();
        let was_watch = version.is_some();
        let result = match &version {
            None => list(client, query, &mut listener).await,
            Some(since) => follow(client, query, (since.clone(), failed), &mut listener).await,
        };
        failed = result.is_err();
        match result {
            Ok(Some(next)) => {
                version = Some(next);
                pause = FIRST_PAUSE;
                // A server that ends every watch at once is not to be asked without a pause.
                if was_watch && began.elapsed() < FIRST_PAUSE {
                    tokio::time::sleep(FIRST_PAUSE).await;
                }
            }
            Ok(None) => return,
            Err(Ended { error, version: reached }) => {
                // A watch that broke off goes on from where it was. One that is too old begins anew, as does one that is refused:
                // what may be seen may have changed.
                version = reached.filter(|_| matches!(error, ApiError::Connection(_)));
                if !matches!(error, ApiError::Expired) && !listener(Event::Failed(error)) {
                    return;
                }
                let jitter = 0.5 + fastrand::f64() / 2.0;
                tokio::time::sleep(pause.mul_f64(jitter)).await;
                pause = (pause * 2).min(LAST_PAUSE);
            }
        }
    }
}

/// Why a list or a watch ended, and how far it came.
struct Ended {
    error: ApiError,
    version: Option<String>,
}

impl From<ApiError> for Ended {
    fn from(error: ApiError) -> Self {
        Self { error, version: None }
    }
}

/// Lists all pages; the version to watch from, or `None` if nobody listens any more.
async fn list<T: Object>(
    client: &Client,
    query: &Query,
    listener: &mut impl FnMut(Event<T>) -> bool,
) -> Result<Option<String>, Ended> {
    let mut next = String::new();
    listener(Event::Begin);
    loop {
        let mut path = query.path(&[("limit", &PAGE.to_string())]);
        if !next.is_empty() {
            let _ = write!(path, "&continue={}", escaped(&next));
        }
        let page: List<T> = client.get(&path, query.accept(true)).await?;
        if !page.items.into_iter().all(|item| listener(Event::Applied(item))) {
            return Ok(None);
        }
        if page.metadata.next.is_empty() {
            return Ok(listener(Event::Complete).then_some(page.metadata.resource_version));
        }
        next = page.metadata.next;
    }
}

/// Watches until the server ends it; the version that was reached, or `None` if nobody listens any more.
async fn follow<T: Object>(
    client: &Client,
    query: &Query,
    (mut version, resumed): (String, bool),
    listener: &mut impl FnMut(Event<T>) -> bool,
) -> Result<Option<String>, Ended> {
    let seconds = query.duration.as_secs().max(1).to_string();
    let asked = [
        ("watch", "true"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", &seconds),
        ("resourceVersion", &version),
    ];
    let mut body = client.open(&query.path(&asked), query.accept(false)).await?;
    if resumed && !listener(Event::Resumed) {
        return Ok(None);
    }
    let mut buffer: Vec<u8> = Vec::new();
    loop {
        let ended = |what: String, version: &String| {
            Err(Ended { error: ApiError::Connection(what), version: Some(version.clone()) })
        };
        let data = match tokio::time::timeout(query.duration + GRACE, body.frame()).await {
            Err(_) => return ended("the watch fell silent".into(), &version),
            Ok(None) => return Ok(Some(version)),
            Ok(Some(Err(error))) => return ended(format!("the watch broke off: {error}"), &version),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        buffer.extend_from_slice(&data);
        let mut rest = buffer.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, behind) = rest.split_at_checked(end).unwrap_or_default();
            rest = behind.get(1..).unwrap_or_default();
            if !line.trim_ascii().is_empty() && !event(line, &mut version, listener)? {
                return Ok(None);
            }
        }
        buffer = rest.to_vec();
        if buffer.len() > MAX_EVENT {
            return Err(ApiError::Answer(format!("an event of more than {MAX_EVENT} bytes")).into());
        }
    }
}

/// Whether one event can be read.
#[cfg(feature = "fuzzing")]
pub(crate) fn reads_event<T: Object>(line: &[u8]) -> bool {
    event::<T>(line, &mut String::new(), &mut |_| true).is_ok()
}

/// Reads one event; false if nobody listens any more.
fn event<T: Object>(
    line: &[u8],
    version: &mut String,
    listener: &mut impl FnMut(Event<T>) -> bool,
) -> Result<bool, Ended> {
    let unreadable = |error: serde_json::Error| ApiError::Answer(error.to_string());
    let Kind { kind } = serde_json::from_slice(line).map_err(unreadable)?;
    if matches!(kind.as_str(), "BOOKMARK" | "ERROR") {
        let Of::<Marker> { object: marker } = serde_json::from_slice(line).map_err(unreadable)?;
        if kind == "ERROR" {
            return Err(match marker.code {
                410 => ApiError::Expired.into(),
                _ => ApiError::Answer(marker.message.chars().take(300).collect()).into(),
            });
        }
        *version = marker.metadata.resource_version;
        return Ok(true);
    }
    let Of::<T> { object } = serde_json::from_slice(line).map_err(unreadable)?;
    version.clone_from(&object.metadata().resource_version);
    Ok(match kind.as_str() {
        "DELETED" => listener(Event::Deleted(object)),
        _ => listener(Event::Applied(object)),
    })
}

impl Query {
    /// What is usual: all objects at a path.
    pub(crate) fn all(path: impl Into<String>) -> Self {
        // Five to ten minutes are what other clients ask for.
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

/// A value as it stands in a query.
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
