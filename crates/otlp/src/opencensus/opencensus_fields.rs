//! The field numbers of OpenCensus, a module per message.

pub(super) mod oc_request {
    pub(in super::super) const NODE: u32 = 1;
    pub(in super::super) const SPANS: u32 = 2;
    pub(in super::super) const RESOURCE: u32 = 3;
}

pub(super) mod oc_node {
    pub(in super::super) const IDENTIFIER: u32 = 1;
    pub(in super::super) const LIBRARY: u32 = 2;
    pub(in super::super) const SERVICE: u32 = 3;
    pub(in super::super) const ATTRIBUTES: u32 = 4;
    pub(in super::super) const HOST_NAME: u32 = 1;
    pub(in super::super) const PID: u32 = 2;
    pub(in super::super) const STARTED: u32 = 3;
    pub(in super::super) const LANGUAGE: u32 = 1;
    pub(in super::super) const EXPORTER_VERSION: u32 = 2;
    pub(in super::super) const CORE_VERSION: u32 = 3;
    pub(in super::super) const SERVICE_NAME: u32 = 1;
}

pub(super) mod oc_resource {
    pub(in super::super) const TYPE: u32 = 1;
    pub(in super::super) const LABELS: u32 = 2;
}

pub(super) mod oc_span {
    pub(in super::super) const TRACE_ID: u32 = 1;
    pub(in super::super) const SPAN_ID: u32 = 2;
    pub(in super::super) const PARENT_SPAN_ID: u32 = 3;
    pub(in super::super) const NAME: u32 = 4;
    pub(in super::super) const START: u32 = 5;
    pub(in super::super) const END: u32 = 6;
    pub(in super::super) const ATTRIBUTES: u32 = 7;
    pub(in super::super) const TIME_EVENTS: u32 = 9;
    pub(in super::super) const LINKS: u32 = 10;
    pub(in super::super) const STATUS: u32 = 11;
    pub(in super::super) const SAME_PROCESS: u32 = 12;
    pub(in super::super) const KIND: u32 = 14;
    pub(in super::super) const TRACE_STATE: u32 = 15;
    pub(in super::super) const RESOURCE: u32 = 16;
}

pub(super) mod oc_attributes {
    pub(in super::super) const MAP: u32 = 1;
    pub(in super::super) const DROPPED: u32 = 2;
    /// The key in an entry of a map.
    pub(in super::super) const KEY: u32 = 1;
    pub(in super::super) const VALUE: u32 = 2;
    pub(in super::super) const STRING: u32 = 1;
    pub(in super::super) const INT: u32 = 2;
    pub(in super::super) const BOOL: u32 = 3;
    pub(in super::super) const DOUBLE: u32 = 4;
    /// The content of a text, and of a wrapper of a single value.
    pub(in super::super) const INNER: u32 = 1;
}

pub(super) mod oc_event {
    pub(in super::super) const EVENTS: u32 = 1;
    pub(in super::super) const DROPPED_ANNOTATIONS: u32 = 2;
    pub(in super::super) const DROPPED_MESSAGES: u32 = 3;
    pub(in super::super) const TIME: u32 = 1;
    pub(in super::super) const ANNOTATION: u32 = 2;
    pub(in super::super) const MESSAGE: u32 = 3;
    pub(in super::super) const DESCRIPTION: u32 = 1;
    pub(in super::super) const ATTRIBUTES: u32 = 2;
    pub(in super::super) const TYPE: u32 = 1;
    pub(in super::super) const ID: u32 = 2;
    pub(in super::super) const UNCOMPRESSED: u32 = 3;
    pub(in super::super) const COMPRESSED: u32 = 4;
}

pub(super) mod oc_link {
    pub(in super::super) const LINKS: u32 = 1;
    pub(in super::super) const DROPPED: u32 = 2;
    pub(in super::super) const TRACE_ID: u32 = 1;
    pub(in super::super) const SPAN_ID: u32 = 2;
    pub(in super::super) const ATTRIBUTES: u32 = 4;
    pub(in super::super) const TRACE_STATE: u32 = 5;
}

pub(super) mod oc_status {
    pub(in super::super) const CODE: u32 = 1;
    pub(in super::super) const MESSAGE: u32 = 2;
}

pub(super) mod oc_trace_state {
    pub(in super::super) const ENTRIES: u32 = 1;
    pub(in super::super) const KEY: u32 = 1;
    pub(in super::super) const VALUE: u32 = 2;
}

pub(super) mod oc_time {
    pub(in super::super) const SECONDS: u32 = 1;
    pub(in super::super) const NANOSECONDS: u32 = 2;
}
