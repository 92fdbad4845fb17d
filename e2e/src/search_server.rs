//! A strict stand-in for the bulk API of Elasticsearch and of OpenSearch.
//!
//! *Guaranteed.* It answers for each document as the real servers do: by status, type and reason of an error. It
//! refuses unknown parameters and fields of actions, names that indices must not have, documents with a key twice,
//! anything but `create` on data streams, and documents of data streams without a time. Like them it sets the type of
//! a field by its first value. It can be busy, take only small requests, and lose answers.
//!
//! *Does not* store anything but the documents, and knows no templates.

mod bulk_body;
mod document_rules;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use serde_json::{Value, json};

use self::bulk_body::BulkLine;
use crate::backend::{CLOSE_WITHOUT_ANSWER, HttpBackend, HttpReply, ReceivedRequest};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchKind {
    Elasticsearch,
    OpenSearch,
}

/// What the server does wrong, and what it expects.
#[derive(Clone, Debug, Default)]
pub struct SearchBehavior {
    /// So many documents are not taken for now.
    pub busy_documents: usize,
    /// So many requests that store something are carried out, and not answered.
    pub lost_answers: usize,
    /// Larger requests get 413.
    pub max_request_bytes: Option<usize>,
    /// The expected header `authorization`.
    pub authorization: Option<String>,
}

#[derive(Debug, Default)]
struct SearchState {
    behavior: SearchBehavior,
    /// Documents by index and id.
    documents: BTreeMap<(String, String), Value>,
    /// The types of fields by index and path.
    types: BTreeMap<(String, String), &'static str>,
    /// What was wrong with whole requests.
    faults: Vec<String>,
    /// How often each answer was given.
    statuses: BTreeMap<u16, usize>,
}

/// A server on a free port.
pub struct SearchServer {
    backend: HttpBackend,
    state: Arc<Mutex<SearchState>>,
}

impl SearchServer {
    pub fn start(kind: SearchKind, behavior: SearchBehavior) -> Self {
        let state = Arc::new(Mutex::new(SearchState { behavior, ..SearchState::default() }));
        let shared = state.clone();
        let backend = HttpBackend::start(move |request| shared.lock().unwrap().answer(kind, request));
        Self { backend, state }
    }

    pub fn address(&self) -> SocketAddr {
        self.backend.address()
    }

    fn state(&self) -> MutexGuard<'_, SearchState> {
        self.state.lock().unwrap()
    }

    /// The documents with their indices.
    pub fn documents(&self) -> Vec<(String, Value)> {
        let state = self.state();
        state.documents.iter().map(|((index, _), document)| (index.clone(), document.clone())).collect()
    }

    /// How many documents got this status, or requests if they failed as a whole.
    pub fn count(&self, status: u16) -> usize {
        self.state().statuses.get(&status).copied().unwrap_or_default()
    }

    /// What was wrong with whole requests.
    pub fn faults(&self) -> Vec<String> {
        self.state().faults.clone()
    }
}

/// Why a document is not taken.
struct DocumentError {
    status: u16,
    kind: &'static str,
    reason: String,
}

impl SearchState {
    fn answer(&mut self, kind: SearchKind, request: &ReceivedRequest) -> HttpReply {
        if self.behavior.authorization.as_deref().is_some_and(|expected| request.header("authorization") != expected) {
            return self.fail(401, "security_exception", "missing authentication credentials");
        }
        if self.behavior.max_request_bytes.is_some_and(|max| request.body.len() > max) {
            *self.statuses.entry(413).or_default() += 1;
            return (413, Vec::new(), Vec::new());
        }
        let lines = match bulk_body::read(kind, request) {
            Ok(lines) => lines,
            Err(fault) => {
                self.faults.push(fault.clone());
                return self.fail(400, "illegal_argument_exception", &fault);
            }
        };
        let items: Vec<Value> = lines.into_iter().map(|line| self.item(line)).collect();
        let has_stored = items.iter().any(|item| item["create"]["status"] == 201 || item["index"]["status"] == 201);
        if has_stored && self.behavior.lost_answers > 0 {
            self.behavior.lost_answers -= 1;
            return CLOSE_WITHOUT_ANSWER;
        }
        let errors = items.iter().any(|item| item["create"]["error"].is_object() || item["index"]["error"].is_object());
        reply(200, &json!({"errors": errors, "items": items}))
    }

    fn fail(&mut self, status: u16, kind: &str, reason: &str) -> HttpReply {
        *self.statuses.entry(status).or_default() += 1;
        reply(status, &json!({"error": {"type": kind, "reason": reason}, "status": status}))
    }

    fn item(&mut self, line: BulkLine) -> Value {
        let action = line.action;
        let (status, error) = match self.store(line) {
            Ok(()) => (201, None),
            Err(DocumentError { status, kind, reason }) => (status, Some(json!({"type": kind, "reason": reason}))),
        };
        *self.statuses.entry(status).or_default() += 1;
        let mut item = json!({"status": status});
        if let Some(error) = error {
            item["error"] = error;
        }
        json!({action: item})
    }

    fn store(&mut self, line: BulkLine) -> Result<(), DocumentError> {
        let error = |status, kind, reason: String| Err(DocumentError { status, kind, reason });
        if let Some(left) = self.behavior.busy_documents.checked_sub(1) {
            self.behavior.busy_documents = left;
            return error(
                429,
                "es_rejected_execution_exception",
                "rejected execution of coordinating operation".into(),
            );
        }
        document_rules::check(&line)?;
        let id = line.id.clone().unwrap_or_else(|| format!("chosen-by-the-server-{}", self.documents.len()));
        let key = (line.index.clone(), id);
        if line.action == "create" && self.documents.contains_key(&key) {
            return error(409, "version_conflict_engine_exception", format!("[{}]: version conflict", key.1));
        }
        document_rules::check_types(&line.index, &line.document, &mut self.types)?;
        self.documents.insert(key, line.document);
        Ok(())
    }
}

fn reply(status: u16, body: &Value) -> HttpReply {
    (status, vec![("content-type", "application/json".to_owned())], body.to_string().into_bytes())
}
