//! Field numbers that the tail sampler reads and writes.

pub(super) const RESOURCE_ENTRY: u32 = 1;
pub(super) const SCOPE_ENTRY: u32 = 2;
pub(super) const RESOURCE: u32 = 1;
pub(super) const RESOURCE_ATTRIBUTE: u32 = 1;
pub(super) const SCOPE: u32 = 1;
pub(super) const SPAN: u32 = 2;
pub(super) const SCOPE_ATTRIBUTE: u32 = 3;

pub(super) mod span {
    pub(in super::super) const TRACE_ID: u32 = 1;
    pub(in super::super) const TRACE_STATE: u32 = 3;
    pub(in super::super) const PARENT: u32 = 4;
    pub(in super::super) const START: u32 = 7;
    pub(in super::super) const END: u32 = 8;
    pub(in super::super) const ATTRIBUTE: u32 = 9;
    pub(in super::super) const STATUS: u32 = 15;
    pub(in super::super) const FLAGS: u32 = 16;
}

pub(super) const STATUS_CODE: u32 = 3;
/// `STATUS_CODE_ERROR`.
pub(super) const ERROR: i32 = 2;
