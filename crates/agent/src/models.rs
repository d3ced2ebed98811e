//! Which model is asked for what, and who stands in for it.

use bailey_kernel::Provider;
use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// What a model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModelRole {
    /// A turn's own steps.
    Main,
    /// Summaries of what falls out of the context.
    Summary,
    /// Remarks on what happened, for the memory.
    Observer,
    /// Plans.
    Planner,
}

impl ModelRole {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Main, Self::Summary, Self::Observer, Self::Planner];

    /// Its name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Summary => "summary",
            Self::Observer => "observer",
            Self::Planner => "planner",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// A model and those that may stand in for it, in order. Clones share where they are.
#[derive(Clone)]
pub struct Route {
    providers: Arc<[Arc<dyn Provider>]>,
    current: Arc<AtomicUsize>,
}

impl Route {
    /// A model, and those that may stand in for it.
    #[must_use]
    pub fn new(first: Arc<dyn Provider>, instead: impl IntoIterator<Item = Arc<dyn Provider>>) -> Self {
        let providers = std::iter::once(first).chain(instead).collect();
        Self { providers, current: Arc::default() }
    }

    /// The models in order, the first choice first.
    #[must_use]
    pub fn providers(&self) -> &[Arc<dyn Provider>] {
        &self.providers
    }

    /// The one that is asked next; a context is measured by its window.
    #[must_use]
    pub fn current(&self) -> Option<&Arc<dyn Provider>> {
        self.remaining().next().map(|(_, provider)| provider)
    }

    /// The one that is asked next and those after it, with their places.
    pub(crate) fn remaining(&self) -> impl Iterator<Item = (usize, &Arc<dyn Provider>)> {
        self.providers.iter().enumerate().skip(self.current.load(Ordering::Relaxed))
    }

    /// From now on the model at this place is asked first.
    pub(crate) fn stay_at(&self, place: usize) {
        self.current.store(place, Ordering::Relaxed);
    }
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |provider: &Arc<dyn Provider>| format!("{}/{}", provider.name(), provider.model());
        f.debug_list().entries(self.providers.iter().map(name)).finish()
    }
}

/// The models by what they are asked for: a skill's own, else the role's, else the default.
#[derive(Debug, Clone)]
pub struct Models {
    main: Route,
    roles: BTreeMap<ModelRole, Route>,
    skills: BTreeMap<String, Route>,
}

impl Models {
    /// One route for everything.
    #[must_use]
    pub fn new(main: Route) -> Self {
        Self { main, roles: BTreeMap::new(), skills: BTreeMap::new() }
    }

    /// One model for everything, and nobody to stand in for it.
    #[must_use]
    pub fn only(provider: Arc<dyn Provider>) -> Self {
        Self::new(Route::new(provider, []))
    }

    /// The same with another route for a role.
    #[must_use]
    pub fn with_role(mut self, role: ModelRole, route: Route) -> Self {
        self.roles.insert(role, route);
        self
    }

    /// The same with another route for whatever a skill asks.
    #[must_use]
    pub fn with_skill(mut self, skill: &str, route: Route) -> Self {
        self.skills.insert(skill.into(), route);
        self
    }

    /// The route of a role.
    #[must_use]
    pub fn route(&self, role: ModelRole) -> &Route {
        self.roles.get(&role).unwrap_or(&self.main)
    }

    /// The models as this skill sees them.
    #[must_use]
    pub fn for_skill(&self, skill: &str) -> Self {
        match self.skills.get(skill) {
            Some(route) => Self::new(route.clone()),
            None => self.clone(),
        }
    }

    /// The same models for a new turn: every route begins at its first choice again.
    #[must_use]
    pub fn afresh(&self) -> Self {
        let afresh = |route: &Route| Route { current: Arc::default(), ..route.clone() };
        Self {
            main: afresh(&self.main),
            roles: self.roles.iter().map(|(role, route)| (*role, afresh(route))).collect(),
            skills: self.skills.iter().map(|(skill, route)| (skill.clone(), afresh(route))).collect(),
        }
    }
}
