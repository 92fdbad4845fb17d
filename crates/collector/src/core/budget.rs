//! Memory as an account: every byte that is held was reserved before it was allocated.
//!
//! A [`Budget`] is a limit in bytes. The pipelines that draw on it are its [`Member`]s. Half of the limit is divided
//! among them as a guarantee and the other half is a common pool, so that one pipeline whose backend hangs can take
//! the pool and its own share, and never what the others were promised. A lone member has it all.
//!
//! *Guarantees.* No charge is granted that would bring the sum of all above the limit, also while members join, leave and
//! still hold more than their new share. A charge is given back exactly once, when it is dropped. *Assumes* that callers charge the capacity of what they allocate. *Does not* count what the allocator, the
//! sockets and the program itself need: that is outside, and bounded by connections.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// A limit in bytes that several members share.
#[derive(Debug)]
pub struct Budget {
    /// All charges together, whoever's share they are in.
    total: Account,
    pool: Account,
    limits: Mutex<Limits>,
}

#[derive(Debug, Default)]
struct Limits {
    limit: u64,
    /// The part of the limit that new requests may not use: it is kept for those under way.
    spike: u64,
    /// The accounts of the members. Not the members themselves: to let go of the last handle of one ends it, which
    /// divides the limit anew, and that cannot be done by someone who is just looking at the limits.
    members: Vec<Arc<Account>>,
}

/// One pipeline's access to a budget.
#[derive(Debug)]
pub struct Member {
    budget: Arc<Budget>,
    own: Arc<Account>,
}

/// A use of memory that is given back on drop.
#[derive(Debug)]
pub struct Charge {
    member: Option<Arc<Member>>,
    own: u64,
    pool: u64,
}

#[derive(Debug, Default)]
struct Account {
    used: AtomicU64,
    limit: AtomicU64,
    /// Up to where new requests are let in.
    soft: AtomicU64,
}

impl Budget {
    /// A budget of `limit` bytes, `spike` of which only requests under way may use.
    pub fn new(limit: u64, spike: u64) -> Arc<Self> {
        let budget = Self { total: Account::default(), pool: Account::default(), limits: Mutex::default() };
        budget.resize(limit, spike);
        Arc::new(budget)
    }

    /// Adds a member, and divides the limit anew.
    pub fn join(self: &Arc<Self>) -> Arc<Member> {
        let member = Arc::new(Member { budget: self.clone(), own: Arc::default() });
        let mut limits = self.limits();
        limits.members.push(member.own.clone());
        self.divide(&limits);
        member
    }

    /// Changes the limit. What is held already stays held.
    pub fn resize(&self, limit: u64, spike: u64) {
        let mut limits = self.limits();
        limits.limit = limit;
        limits.spike = spike.min(limit);
        self.divide(&limits);
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limits().limit
    }

    /// Bytes in use by all members.
    pub fn used(&self) -> u64 {
        self.total.used()
    }

    fn limits(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn divide(&self, limits: &Limits) {
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
        self.budget.divide(&limits);
    }
}

impl Member {
    /// Reserves memory for a new request, or says that there is none.
    pub fn admit(self: &Arc<Self>, bytes: u64) -> Option<Charge> {
        self.charge(bytes, true)
    }

    /// Whether a new request of this size would be let in if nothing else were held.
    pub fn could_ever_admit(&self, bytes: u64) -> bool {
        [&self.own, &self.budget.pool].iter().any(|share| share.soft.load(Ordering::Relaxed) >= bytes)
    }

    /// Whether a request that grows may come to this size if nothing else is held. Piece by piece it can have both shares.
    pub fn could_ever_hold(&self, bytes: u64) -> bool {
        let limit = |share: &Account| share.limit.load(Ordering::Relaxed);
        limit(&self.own).saturating_add(limit(&self.budget.pool)) >= bytes
    }

    /// Bytes in use by this member, its part of the pool left out.
    pub fn used(&self) -> u64 {
        self.own.used()
    }

    /// How much of what new requests may use is in use, and how much that is: of this member and of the pool.
    pub fn fill(&self) -> (u64, u64) {
        let (own, pool) = (&self.own, &self.budget.pool);
        let soft = |account: &Account| account.soft.load(Ordering::Relaxed);
        (own.used() + pool.used(), soft(own) + soft(pool))
    }

    fn charge(self: &Arc<Self>, bytes: u64, new: bool) -> Option<Charge> {
        let share = self.take(bytes, new)?;
        let mut charge = Charge { member: Some(self.clone()), own: 0, pool: 0 };
        charge.add(share, bytes);
        Some(charge)
    }

    /// Takes `bytes` from the share that has them.
    fn take(&self, bytes: u64, new: bool) -> Option<Share> {
        let (total, pool) = (&self.budget.total, &self.budget.pool);
        // Only to the limit: what is kept for requests under way is kept in each share by itself.
        if !total.take(bytes, false) {
            return None;
        }
        if self.own.take(bytes, new) {
            return Some(Share::Own);
        }
        if pool.take(bytes, new) {
            return Some(Share::Pool);
        }
        total.give(bytes);
        None
    }
}

/// Where the memory of a charge is from.
enum Share {
    Own,
    Pool,
}

impl Charge {
    /// A charge for nothing, for what is made rather than received.
    pub fn free() -> Self {
        Self { member: None, own: 0, pool: 0 }
    }

    /// Bytes charged.
    pub fn bytes(&self) -> u64 {
        self.own + self.pool
    }

    /// Reserves `more` for a request under way; false if there is none, and then nothing has changed.
    #[must_use]
    pub fn grow(&mut self, more: u64) -> bool {
        let Some(member) = &self.member else { return true };
        let Some(share) = member.take(more, false) else { return false };
        self.add(share, more);
        true
    }

    fn add(&mut self, share: Share, bytes: u64) {
        match share {
            Share::Own => self.own += bytes,
            Share::Pool => self.pool += bytes,
        }
    }

    /// Reserves `bytes` more, as a charge of its own, for a copy of something that is under way.
    pub fn another(&self, bytes: u64) -> Option<Self> {
        match &self.member {
            None => Some(Self::free()),
            Some(member) => member.charge(bytes, false),
        }
    }

    /// Reserves `bytes` for something that is to be held on behalf of a request, as a charge of its own; what is kept for
    /// requests under way stays free.
    pub fn to_hold(&self, bytes: u64) -> Option<Self> {
        match &self.member {
            None => Some(Self::free()),
            Some(member) => member.charge(bytes, true),
        }
    }

    /// Takes over what `other` holds, or gives it back if it is another member's.
    pub fn absorb(&mut self, mut other: Self) -> Result<(), Self> {
        if !self.is_of_the_same(&other) {
            return Err(other);
        }
        self.own += std::mem::take(&mut other.own);
        self.pool += std::mem::take(&mut other.pool);
        Ok(())
    }

    /// Whether both are the same member's.
    pub fn is_of_the_same(&self, other: &Self) -> bool {
        match (&self.member, &other.member) {
            (None, None) => true,
            (Some(member), Some(others)) => Arc::ptr_eq(member, others),
            _ => false,
        }
    }

    /// How much of what new requests may use is in use, and how much that is: of this member and of the pool. `None` for a
    /// charge for nothing.
    pub fn fill(&self) -> Option<(u64, u64)> {
        self.member.as_ref().map(|member| member.fill())
    }

    /// Gives back all but `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        let Some(member) = &self.member else { return };
        let mut surplus = self.bytes().saturating_sub(bytes);
        member.budget.total.give(surplus);
        let pool = surplus.min(self.pool);
        surplus -= pool;
        member.budget.pool.give(pool);
        member.own.give(surplus);
        self.pool -= pool;
        self.own -= surplus;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

impl Account {
    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Sets the limit, and keeps the budget's share of the spike free of new requests.
    fn resize(&self, limit: u64, limits: &Limits) {
        let spike = u128::from(limits.spike) * u128::from(limit) / u128::from(limits.limit.max(1));
        self.limit.store(limit, Ordering::Relaxed);
        self.soft.store(limit.saturating_sub(u64::try_from(spike).unwrap_or(u64::MAX)), Ordering::Relaxed);
    }

    /// Takes `bytes` if they fit.
    fn take(&self, bytes: u64, new: bool) -> bool {
        let limit = if new { &self.soft } else { &self.limit }.load(Ordering::Relaxed);
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits).is_ok()
    }

    fn give(&self, bytes: u64) {
        // Whoever gives nothing back need not take the account away from another core.
        if bytes > 0 {
            self.used.fetch_sub(bytes, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests;
