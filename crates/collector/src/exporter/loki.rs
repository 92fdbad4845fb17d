//! `loki`: log records to Grafana Loki's push API.
//!
//! *Guarantees.* A label, a tenant and a name of the metadata are never taken from a record, unless the settings name
//! the attribute ([`name_resolver`](super::name_resolver)). Each tenant gets requests of its own; one that is limited
//! does not hold up the others. Lines of a stream are sent in the order of their times, within a batch. A request that
//! is too large for Loki is halved. What Loki stored in part is not sent again.
//!
//! *Does not* order the lines of different batches: with several consumers of the queue these are under way at once.
//! Loki accepts lines out of order within a window, unless it is configured otherwise.

mod metadata;
mod push_plan;
mod push_request;
mod response;
mod stream_labels;

#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE};
use kubewake_config::model::LokiExporter;

use self::{
    push_plan::{PlannedEntry, PushPlan, TenantPlan},
    push_request::{LineLimits, PushRequest},
    stream_labels::StreamLabels,
};
use crate::{
    components::{BuildError, ExporterContext, ExporterParts, PreparedExporter},
    core::{Batch, Exporter, RejectReason, SendError, SendFuture, SendSuccess, heavy_work},
    exporter::batch_delivery::{BatchDelivery, Continuation},
    extension::ClientAuth,
    net::{compress::RequestBody, http_destination::HttpDestination},
};

const CONTENT_TYPE_PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const TENANT_HEADER: HeaderName = HeaderName::from_static("x-scope-orgid");

pub(crate) fn prepare(settings: &LokiExporter, context: &ExporterContext<'_>) -> Result<PreparedExporter, BuildError> {
    build(settings, context.auth.clone()).map(PreparedExporter::new)
}

fn build(settings: &LokiExporter, auth: Option<Arc<dyn ClientAuth>>) -> Result<ExporterParts, BuildError> {
    let headers = [(CONTENT_TYPE, CONTENT_TYPE_PROTOBUF)];
    let destination = HttpDestination::new(&settings.push_url(), &settings.http, headers, auth)?;
    let max_bytes = settings.max_request_bytes as usize;
    let loki = Loki {
        labels: Arc::new(StreamLabels::new(settings)),
        limits: LineLimits::new(settings),
        max_request_bytes: AtomicUsize::new(max_bytes),
        destination: destination.with_timeout(settings.http.timeout),
    };
    Ok(ExporterParts {
        destination: loki.destination.labels(),
        exporter: Arc::new(loki),
        // Each request of an attempt has the time limit, because an attempt may take several.
        timeout: None,
        retry: settings.http.retry.clone(),
        queue: settings.http.queue.clone(),
    })
}

struct Loki {
    destination: HttpDestination,
    labels: Arc<StreamLabels>,
    limits: LineLimits,
    /// The size of a request before compression: as configured, or less since one was too large.
    max_request_bytes: AtomicUsize,
}

/// What became of the records of a request.
enum PushResult {
    Stored,
    /// All but so many lines were stored.
    StoredExcept {
        lines: u64,
        error: SendError,
    },
    /// The request is too large, and the next one will be smaller.
    Halved,
    /// The destination refuses the records for good.
    Refused(SendError),
    /// The destination refuses everything of this tenant for good.
    Denied(SendError),
    Unsent(SendError),
}

impl Loki {
    async fn export(&self, batch: &Batch) -> Result<SendSuccess, SendError> {
        let owned = batch.clone();
        let labels = self.labels.clone();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let plan = heavy_work::run(batch.bytes(), move || PushPlan::make(owned, &labels, now)).await?;
        let plan = Arc::new(plan);
        let mut delivery = BatchDelivery::new(batch);
        for (record, reason) in &plan.rejected {
            delivery.reject([*record], *reason);
        }
        for tenant in 0..plan.tenants.len() {
            if self.push_tenant(&plan, tenant, &mut delivery).await == Continuation::Stop {
                break;
            }
        }
        delivery.into_result(batch)
    }

    /// Sends the records of a tenant, one request after another.
    async fn push_tenant(&self, plan: &Arc<PushPlan>, number: usize, delivery: &mut BatchDelivery) -> Continuation {
        let Some(tenant) = plan.tenants.get(number) else { return Continuation::Continue };
        let Some(headers) = tenant_headers(tenant) else {
            delivery.reject(records(&tenant.entries), RejectReason::Target);
            return Continuation::Continue;
        };
        let mut start = 0;
        while let Some(rest) = tenant.entries.get(start..).filter(|rest| !rest.is_empty()) {
            let request = match self.encode(plan, number, start).await {
                Ok(request) => request,
                Err(error) => return delivery.retry_later(error),
            };
            let entries = rest.get(..request.end - start).unwrap_or(rest);
            match self.push(&request, &headers).await {
                PushResult::Stored if request.lines == 0 => {}
                PushResult::Stored => delivery.store(records(entries), request.truncated),
                PushResult::StoredExcept { lines, error } => {
                    store_except(delivery, entries, &request, lines, &error);
                }
                PushResult::Refused(error) => {
                    delivery.refuse(records(entries), response::refusal_reason(&error), error);
                }
                PushResult::Denied(error) => {
                    delivery.refuse(records(rest), RejectReason::Target, error);
                    return Continuation::Continue;
                }
                PushResult::Unsent(error) => return delivery.retry_later(error),
                PushResult::Halved => continue,
            }
            delivery.reject(request.too_long.iter().copied(), RejectReason::TooLarge);
            start = request.end;
        }
        Continuation::Continue
    }

    async fn encode(&self, plan: &Arc<PushPlan>, number: usize, start: usize) -> Result<PushRequest, SendError> {
        let max_bytes = self.max_request_bytes.load(Ordering::Relaxed);
        let plan = plan.clone();
        let labels = self.labels.clone();
        let limits = self.limits;
        let expected = max_bytes.min(plan.batch.bytes());
        let encode = move || match plan.tenants.get(number) {
            Some(tenant) => PushRequest::encode(&plan, tenant, start, max_bytes, &labels, limits),
            None => Err(SendError::local("the plan has no such tenant")),
        };
        heavy_work::run(expected, encode).await
    }

    async fn push(&self, request: &PushRequest, headers: &HeaderMap) -> PushResult {
        if request.lines == 0 {
            return PushResult::Stored;
        }
        let rejected = AtomicU64::new(0);
        let body = || RequestBody::from(request.body.clone());
        let interpret = |head: &_, answer: &_| response::interpret(head, answer, &rejected);
        let Err(error) = self.destination.send(headers, body, interpret).await else { return PushResult::Stored };
        match rejected.into_inner() {
            _ if error.retryable => PushResult::Unsent(error),
            lines @ 1.. => PushResult::StoredExcept { lines, error },
            0 if response::is_too_large(&error) && request.lines > 1 => {
                // At least half, so that a message of megabytes does not end in requests of single lines.
                self.max_request_bytes.fetch_min(request.plain_bytes.div_ceil(2), Ordering::Relaxed);
                PushResult::Halved
            }
            0 if error.code.blames_data() => PushResult::Refused(error),
            0 => PushResult::Denied(error),
        }
    }
}

impl Exporter for Loki {
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a> {
        Box::pin(self.export(batch))
    }
}

/// Notes that so many lines of a request were not stored. Which ones is not known, so that the first ones stand for
/// them.
fn store_except(
    delivery: &mut BatchDelivery,
    entries: &[PlannedEntry],
    request: &PushRequest,
    lines: u64,
    error: &SendError,
) {
    let rejected = usize::try_from(lines).unwrap_or(usize::MAX);
    // Both are in the order of the request.
    let mut too_long = request.too_long.iter().peekable();
    let sent = records(entries).filter(|record| too_long.next_if(|long| *long == record).is_none());
    delivery.store(records(entries), request.truncated);
    delivery.reject(sent.take(rejected), response::reject_reason(&error.message));
    delivery.set_message(error.message.clone());
}

/// The numbers of the records of entries.
fn records(entries: &[PlannedEntry]) -> impl Iterator<Item = usize> {
    entries.iter().map(|entry| entry.record as usize)
}

/// The headers of a tenant's requests; `None` if the tenant cannot be in a header.
fn tenant_headers(tenant: &TenantPlan) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    if let Some(id) = &tenant.id {
        headers.insert(TENANT_HEADER, HeaderValue::from_str(id).ok()?);
    }
    Some(headers)
}
