//! Memory accounting: every byte that is held was reserved before it was allocated.
//!
//! A [`Budget`] is a limit in bytes. The pipelines that are charged to it are its [`Member`]s. Half of the
//! limit is divided among them as a guarantee, and the other half is a common pool. One pipeline whose backend
//! hangs can therefore take the pool and its own share, and never the guarantee of the others. A single member
//! has the whole limit.
//!
//! *Guarantees.* No charge is granted that would bring the sum of all above the limit, also while members join,
//! leave and still hold more than their new share. A charge is released exactly once, when it is dropped.
//! *Assumes* that callers charge the capacity of what they allocate. *Does not* count what the allocator, the
//! sockets and the program itself need: those are bounded by the number of connections.

mod arriving_charge;

use std::sync::{
    Arc, MutexGuard,
    atomic::{AtomicU64, Ordering},
};

use kubewake_runtime::lock::Mutex;

pub use arriving_charge::ArrivingCharge;

/// A limit in bytes that several members share.
#[derive(Debug)]
pub struct Budget {
    /// All charges together, of every share.
    total: MemoryAccount,
    pool: MemoryAccount,
    limits: Mutex<BudgetLimits>,
}

#[derive(Debug, Default)]
struct BudgetLimits {
    limit: u64,
    /// The part of the limit that is reserved for requests in progress; new requests may not use it.
    spike: u64,
    /// The accounts of the members, not the members: dropping the last reference to a member redistributes the
    /// limit, which takes the lock of these limits.
    members: Vec<Arc<MemoryAccount>>,
}

/// One pipeline's access to a budget.
#[derive(Debug)]
pub struct Member {
    budget: Arc<Budget>,
    own: Arc<MemoryAccount>,
    /// The part of the charges that incomplete requests hold.
    arriving: AtomicU64,
}

/// A reservation of memory that is released on drop.
#[derive(Debug)]
pub struct Charge {
    member: Option<Arc<Member>>,
    own: u64,
    pool: u64,
}

#[derive(Debug, Default)]
struct MemoryAccount {
    used: AtomicU64,
    limit: AtomicU64,
    /// The limit for new requests.
    request_limit: AtomicU64,
}

/// What memory is reserved for, which decides how much of the limit may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChargePurpose {
    /// A new request: the reserve for requests in progress stays free.
    Request,
    /// Data held for a request in progress.
    UnderWay,
    /// Short-lived work on a request: an eighth of the limit for new requests stays free, so that work on one
    /// sender's large request does not refuse the small ones of others.
    Work,
}

/// Work leaves this fraction of the limit for new requests free: one part in eight.
const WORK_RESERVE_DIVISOR: u64 = 8;

impl Budget {
    /// A budget of `limit` bytes, of which `spike` is reserved for requests in progress.
    pub fn new(limit: u64, spike: u64) -> Arc<Self> {
        let budget = Self { total: MemoryAccount::default(), pool: MemoryAccount::default(), limits: Mutex::default() };
        budget.resize(limit, spike);
        Arc::new(budget)
    }

    /// Adds a member and redistributes the limit.
    pub fn join(self: &Arc<Self>) -> Arc<Member> {
        let member = Arc::new(Member { budget: self.clone(), own: Arc::default(), arriving: AtomicU64::new(0) });
        let mut limits = self.limits();
        limits.members.push(member.own.clone());
        self.redistribute(&limits);
        member
    }

    /// Changes the limit. Existing charges stay.
    pub fn resize(&self, limit: u64, spike: u64) {
        let mut limits = self.limits();
        limits.limit = limit;
        limits.spike = spike.min(limit);
        self.redistribute(&limits);
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limits().limit
    }

    /// Bytes in use by all members.
    pub fn used(&self) -> u64 {
        self.total.used()
    }

    fn limits(&self) -> MutexGuard<'_, BudgetLimits> {
        self.limits.lock()
    }

    fn redistribute(&self, limits: &BudgetLimits) {
        let count = limits.members.len() as u64;
        let guaranteed = match count {
            0 | 1 => limits.limit,
            n => limits.limit / 2 / n,
        };
        self.total.resize(limits.limit, limits);
        self.pool.resize(limits.limit.saturating_sub(guaranteed * count.max(1)), limits);
        limits.members.iter().for_each(|own| own.resize(guaranteed, limits));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut limits = self.budget.limits();
        limits.members.retain(|own| !Arc::ptr_eq(own, &self.own));
        self.budget.redistribute(&limits);
    }
}

impl Member {
    /// Reserves memory for a new request; `None` if there is not enough.
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Option<Charge> {
        self.charge(bytes, ChargePurpose::Request)
    }

    /// Whether a new request of this size would be accepted if nothing else were held.
    pub fn could_ever_reserve(&self, bytes: u64) -> bool {
        [&self.own, &self.budget.pool].iter().any(|share| share.request_limit.load(Ordering::Relaxed) >= bytes)
    }

    /// Whether a growing request may reach this size if nothing else is held. In steps it can use both its own
    /// share and the pool.
    pub fn could_ever_hold(&self, bytes: u64) -> bool {
        let limit = |share: &MemoryAccount| share.limit.load(Ordering::Relaxed);
        limit(&self.own).saturating_add(limit(&self.budget.pool)) >= bytes
    }

    /// Bytes in use by this member, without its part of the pool.
    pub fn used(&self) -> u64 {
        self.own.used()
    }

    /// The bytes in use of this member and the pool, and their limit for new requests.
    pub fn usage(&self) -> (u64, u64) {
        let own = &self.own;
        let pool = &self.budget.pool;
        let soft = |account: &MemoryAccount| account.request_limit.load(Ordering::Relaxed);
        (own.used() + pool.used(), soft(own) + soft(pool))
    }

    fn charge(self: &Arc<Self>, bytes: u64, purpose: ChargePurpose) -> Option<Charge> {
        let share = self.take(bytes, purpose)?;
        let mut charge = Charge { member: Some(self.clone()), own: 0, pool: 0 };
        charge.add(share, bytes);
        Some(charge)
    }

    /// Takes `bytes` from the share that has them.
    fn take(&self, bytes: u64, purpose: ChargePurpose) -> Option<ChargeSource> {
        let total = &self.budget.total;
        let pool = &self.budget.pool;
        // Checked against the full limit: each share keeps its own reserve for requests in progress.
        if !total.take(bytes, ChargePurpose::UnderWay) {
            return None;
        }
        if self.own.take(bytes, purpose) {
            return Some(ChargeSource::Own);
        }
        if pool.take(bytes, purpose) {
            return Some(ChargeSource::Pool);
        }
        total.release(bytes);
        None
    }
}

/// Where the memory of a charge is from.
enum ChargeSource {
    Own,
    Pool,
}

impl Charge {
    /// A charge of nothing, for data that was generated rather than received.
    pub fn exempt() -> Self {
        Self { member: None, own: 0, pool: 0 }
    }

    pub fn bytes(&self) -> u64 {
        self.own + self.pool
    }

    /// Reserves `more` for a request in progress; returns false, and changes nothing, if there is no memory.
    #[must_use]
    pub fn grow(&mut self, more: u64) -> bool {
        self.grow_for(more, ChargePurpose::UnderWay)
    }

    fn grow_for(&mut self, more: u64, purpose: ChargePurpose) -> bool {
        let Some(member) = &self.member else { return true };
        let Some(share) = member.take(more, purpose) else { return false };
        self.add(share, more);
        true
    }

    /// Reserves `bytes` for work on the charged request, as a separate charge.
    pub fn reserve_for_work(&self, bytes: u64) -> Option<Self> {
        match &self.member {
            None => Some(Self::exempt()),
            Some(member) => member.charge(bytes, ChargePurpose::Work),
        }
    }

    /// Reserves `more` for work; returns false, and changes nothing, if there is no memory.
    #[must_use]
    pub fn grow_for_work(&mut self, more: u64) -> bool {
        self.grow_for(more, ChargePurpose::Work)
    }

    fn add(&mut self, share: ChargeSource, bytes: u64) {
        match share {
            ChargeSource::Own => self.own += bytes,
            ChargeSource::Pool => self.pool += bytes,
        }
    }

    /// Reserves `bytes` for a copy of a request in progress, as a separate charge.
    pub fn reserve_copy(&self, bytes: u64) -> Option<Self> {
        match &self.member {
            None => Some(Self::exempt()),
            Some(member) => member.charge(bytes, ChargePurpose::UnderWay),
        }
    }

    /// Reserves `bytes` for data that is held on behalf of a request, as a separate charge. The reserve for
    /// requests in progress stays free.
    pub fn reserve_held(&self, bytes: u64) -> Option<Self> {
        match &self.member {
            None => Some(Self::exempt()),
            Some(member) => member.charge(bytes, ChargePurpose::Request),
        }
    }

    /// Whether `bytes` in total, work included, could be granted if nothing else were held.
    pub fn could_ever_reserve_for_work(&self, bytes: u64) -> bool {
        let fits = |member: &Arc<Member>| {
            let limit = |account: &MemoryAccount| account.limit_for(ChargePurpose::Work);
            limit(&member.own).saturating_add(limit(&member.budget.pool)) >= bytes
        };
        self.member.as_ref().is_none_or(fits)
    }

    /// Whether all of `more` would be granted by [`Charge::reserve_held`], one after another, if nothing but
    /// `held` were held.
    pub fn could_ever_hold<'c>(
        &self,
        held: impl Iterator<Item = &'c Charge>,
        more: impl IntoIterator<Item = u64>,
    ) -> bool {
        self.could_ever_grant(held, more, ChargePurpose::Request)
    }

    pub fn could_ever_copy<'c>(&self, held: impl Iterator<Item = &'c Charge>, more: u64) -> bool {
        self.could_ever_grant(held, [more], ChargePurpose::UnderWay)
    }

    fn could_ever_grant<'c>(
        &self,
        held: impl Iterator<Item = &'c Charge>,
        more: impl IntoIterator<Item = u64>,
        purpose: ChargePurpose,
    ) -> bool {
        let Some(member) = &self.member else { return true };
        let (mut own, mut pool) = held.fold((0, 0), |(own, pool), charge| (own + charge.own, pool + charge.pool));
        let shares = [(&mut own, &*member.own), (&mut pool, &member.budget.pool)];
        let mut shares = shares.map(|(used, account)| (used, account.limit_for(purpose)));
        more.into_iter().all(|bytes| {
            let granted = shares.iter_mut().find(|(used, limit)| used.saturating_add(bytes) <= *limit);
            granted.map(|(used, _)| **used += bytes).is_some()
        })
    }

    /// Splits a part of this charge into a separate one; `None` if the charge is smaller.
    pub fn split_off(&mut self, bytes: u64) -> Option<Self> {
        if self.member.is_none() {
            return Some(Self::exempt());
        }
        let own = bytes.min(self.own);
        let pool = bytes - own;
        self.pool = self.pool.checked_sub(pool)?;
        self.own -= own;
        Some(Self { member: self.member.clone(), own, pool })
    }

    /// Takes over the bytes of `other`, or returns it if it belongs to another member.
    pub fn absorb(&mut self, mut other: Self) -> Result<(), Self> {
        if !self.has_same_member(&other) {
            return Err(other);
        }
        self.own += std::mem::take(&mut other.own);
        self.pool += std::mem::take(&mut other.pool);
        Ok(())
    }

    /// Whether both belong to the same member.
    pub fn has_same_member(&self, other: &Self) -> bool {
        match (&self.member, &other.member) {
            (None, None) => true,
            (Some(member), Some(others)) => Arc::ptr_eq(member, others),
            _ => false,
        }
    }

    /// The bytes in use of the member and the pool, and their limit for new requests. `None` for an exempt
    /// charge.
    pub fn usage(&self) -> Option<(u64, u64)> {
        self.member.as_ref().map(|member| member.usage())
    }

    /// Releases all but `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        let Some(member) = &self.member else { return };
        let mut surplus = self.bytes().saturating_sub(bytes);
        member.budget.total.release(surplus);
        let pool = surplus.min(self.pool);
        surplus -= pool;
        member.budget.pool.release(pool);
        member.own.release(surplus);
        self.pool -= pool;
        self.own -= surplus;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

impl MemoryAccount {
    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Sets the limit, and reserves its share of the budget's spike.
    fn resize(&self, limit: u64, limits: &BudgetLimits) {
        let spike = u128::from(limits.spike) * u128::from(limit) / u128::from(limits.limit.max(1));
        self.limit.store(limit, Ordering::Relaxed);
        self.request_limit.store(limit.saturating_sub(u64::try_from(spike).unwrap_or(u64::MAX)), Ordering::Relaxed);
    }

    fn limit_for(&self, purpose: ChargePurpose) -> u64 {
        let soft = || self.request_limit.load(Ordering::Relaxed);
        match purpose {
            ChargePurpose::Request => soft(),
            ChargePurpose::UnderWay => self.limit.load(Ordering::Relaxed),
            ChargePurpose::Work => soft() - soft() / WORK_RESERVE_DIVISOR,
        }
    }

    /// Takes `bytes` if they fit.
    fn take(&self, bytes: u64, purpose: ChargePurpose) -> bool {
        let limit = self.limit_for(purpose);
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits).is_ok()
    }

    fn release(&self, bytes: u64) {
        // Avoids a write to a shared cache line when there is nothing to release.
        if bytes > 0 {
            self.used.fetch_sub(bytes, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests;
