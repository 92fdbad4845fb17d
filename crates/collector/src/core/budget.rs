//! Memory as an account: every byte that is held was reserved before it was allocated.
//!
//! A [`Budget`] is a limit in bytes. The pipelines that draw on it are its [`Member`]s. Half of the limit is divided
//! among them as a guarantee and the other half is a common pool, so that one pipeline whose backend hangs can take
//! the pool and its own share, and never what the others were promised. A lone member has it all.
//!
//! *Guarantees.* No charge is granted that would bring the sum of all above the limit, also while members join, leave and
//! still hold more than their new share. A charge is given back exactly once, when it is dropped. *Assumes* that callers charge the capacity of what they allocate. *Does not* count what the allocator, the
//! sockets and the program itself need: that is outside, and bounded by connections.

mod arriving;

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

pub use arriving::ArrivingCharge;

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
    /// The part of the charges that is held by requests which have not arrived as a whole.
    arriving: AtomicU64,
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

/// For what memory is reserved, and so how far it may be used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// For a new request: the part kept for requests under way stays free.
    Request,
    /// For what is held of a request under way.
    UnderWay,
    /// For work on a request, which is over soon: an eighth of what new requests may use stays free, so that work on one
    /// sender's large request does not turn away the small ones of others.
    Work,
}

/// One part in so many of what new requests may use is left free by work.
const FREE_OF_WORK: u64 = 8;

impl Budget {
    /// A budget of `limit` bytes, `spike` of which only requests under way may use.
    pub fn new(limit: u64, spike: u64) -> Arc<Self> {
        let budget = Self { total: Account::default(), pool: Account::default(), limits: Mutex::default() };
        budget.resize(limit, spike);
        Arc::new(budget)
    }

    /// Adds a member, and divides the limit anew.
    pub fn join(self: &Arc<Self>) -> Arc<Member> {
        let member = Arc::new(Member { budget: self.clone(), own: Arc::default(), arriving: AtomicU64::new(0) });
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
        self.charge(bytes, Purpose::Request)
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

    fn charge(self: &Arc<Self>, bytes: u64, purpose: Purpose) -> Option<Charge> {
        let share = self.take(bytes, purpose)?;
        let mut charge = Charge { member: Some(self.clone()), own: 0, pool: 0 };
        charge.add(share, bytes);
        Some(charge)
    }

    /// Takes `bytes` from the share that has them.
    fn take(&self, bytes: u64, purpose: Purpose) -> Option<Share> {
        let (total, pool) = (&self.budget.total, &self.budget.pool);
        // Only to the limit: what is kept for requests under way is kept in each share by itself.
        if !total.take(bytes, Purpose::UnderWay) {
            return None;
        }
        if self.own.take(bytes, purpose) {
            return Some(Share::Own);
        }
        if pool.take(bytes, purpose) {
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
        self.grow_for(more, Purpose::UnderWay)
    }

    fn grow_for(&mut self, more: u64, purpose: Purpose) -> bool {
        let Some(member) = &self.member else { return true };
        let Some(share) = member.take(more, purpose) else { return false };
        self.add(share, more);
        true
    }

    /// Reserves `bytes` for work on what this is a charge for, as a charge of its own.
    pub fn for_work(&self, bytes: u64) -> Option<Self> {
        match &self.member {
            None => Some(Self::free()),
            Some(member) => member.charge(bytes, Purpose::Work),
        }
    }

    /// Reserves `more` for work; false if there is none, and then nothing has changed.
    #[must_use]
    pub fn grow_for_work(&mut self, more: u64) -> bool {
        self.grow_for(more, Purpose::Work)
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
            Some(member) => member.charge(bytes, Purpose::UnderWay),
        }
    }

    /// Reserves `bytes` for something that is to be held on behalf of a request, as a charge of its own; what is kept for
    /// requests under way stays free.
    pub fn to_hold(&self, bytes: u64) -> Option<Self> {
        match &self.member {
            None => Some(Self::free()),
            Some(member) => member.charge(bytes, Purpose::Request),
        }
    }

    /// Whether there could be so much for work and all else if nothing else were held.
    pub fn could_ever_work_with(&self, bytes: u64) -> bool {
        let fits = |member: &Arc<Member>| {
            let limit = |account: &Account| account.limit_for(Purpose::Work);
            limit(&member.own).saturating_add(limit(&member.budget.pool)) >= bytes
        };
        self.member.as_ref().is_none_or(fits)
    }

    /// Whether all of `more` would be granted by [`Charge::to_hold`], one after another, if nothing but `held` were held.
    pub fn could_ever_hold<'c>(
        &self,
        held: impl Iterator<Item = &'c Charge>,
        more: impl IntoIterator<Item = u64>,
    ) -> bool {
        self.could_ever_grant(held, more, Purpose::Request)
    }

    /// The same for [`Charge::another`].
    pub fn could_ever_have<'c>(&self, held: impl Iterator<Item = &'c Charge>, more: u64) -> bool {
        self.could_ever_grant(held, [more], Purpose::UnderWay)
    }

    fn could_ever_grant<'c>(
        &self,
        held: impl Iterator<Item = &'c Charge>,
        more: impl IntoIterator<Item = u64>,
        purpose: Purpose,
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

    /// Makes a charge of its own of a part of this one; `None` if it is not for so much.
    pub fn split_off(&mut self, bytes: u64) -> Option<Self> {
        if self.member.is_none() {
            return Some(Self::free());
        }
        let own = bytes.min(self.own);
        let pool = bytes - own;
        self.pool = self.pool.checked_sub(pool)?;
        self.own -= own;
        Some(Self { member: self.member.clone(), own, pool })
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

    fn limit_for(&self, purpose: Purpose) -> u64 {
        let soft = || self.soft.load(Ordering::Relaxed);
        match purpose {
            Purpose::Request => soft(),
            Purpose::UnderWay => self.limit.load(Ordering::Relaxed),
            Purpose::Work => soft() - soft() / FREE_OF_WORK,
        }
    }

    /// Takes `bytes` if they fit.
    fn take(&self, bytes: u64, purpose: Purpose) -> bool {
        let limit = self.limit_for(purpose);
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
