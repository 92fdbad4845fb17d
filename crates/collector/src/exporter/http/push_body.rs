//! The body of a request: an array of documents, or a document a line.

use bytes::Bytes;
use kubewake_config::model::HttpFormat;
use kubewake_otlp::{
    view::{LogRecord, MessageView, Resource},
    work_bytes,
};

use super::{document::DocumentStyle, record_list::RecordList};
use crate::{
    core::{Charge, SendError, WorkMemory},
    exporter::record_json::JsonOutput,
};

/// Memory for a request that is granted when the pipeline has none, so that full queues empty themselves.
const UNCHARGED_BYTES: u64 = 32 << 10;

pub(super) struct PushBody {
    /// The body before compression.
    pub(super) plain: Bytes,
    /// The index of the first record that is not in it.
    pub(super) end: usize,
    _charge: Option<Charge>,
}

impl PushBody {
    /// Writes the records from `start` on, until the body has `max_bytes` or memory runs short.
    pub(super) fn encode(
        list: &RecordList,
        start: usize,
        max_bytes: usize,
        style: &DocumentStyle,
    ) -> Result<Self, SendError> {
        let memory = WorkMemory::for_delivery(&list.batch).ok_or_else(|| SendError::local("the batch is empty"))?;
        let mut memory = memory.with_uncharged(UNCHARGED_BYTES);
        let is_array = style.format == HttpFormat::Json;
        let mut out = JsonOutput::new(&mut memory);
        if is_array {
            out.push_byte(b'[');
        }
        let mut end = start;
        // The resource of the last record, and the memory to read it.
        let mut known = (None, 0);
        for listed in list.records.get(start..).unwrap_or_default() {
            let before = out.len();
            let record = LogRecord::new(listed.source.record(&list.batch));
            let resource = Resource::new(list.sources.content(listed.source.resource, &list.batch));
            if known.0 != Some(listed.source.resource) {
                known = (Some(listed.source.resource), work_bytes(resource.as_bytes()));
            }
            let work = work_bytes(record.as_bytes()) + known.1;
            let is_granted = out.begin_work(work);
            if is_granted {
                style.write(&resource, &record, list.now, &mut out);
                out.end_work(work);
            }
            out.push_byte(if is_array { b',' } else { b'\n' });
            if !is_granted || out.is_exhausted() || (out.len() > max_bytes && end > start) {
                out.truncate(before);
                break;
            }
            end += 1;
        }
        if is_array {
            out.pop_if(b',');
            out.push_byte(b']');
        }
        let plain = out.into_bytes();
        if end == start {
            return Err(memory.send_error());
        }
        Ok(Self { plain: plain.into(), end, _charge: memory.into_charge() })
    }
}
