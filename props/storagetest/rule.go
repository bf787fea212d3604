package storagetest

// rule is one line of what a fenced storage must do.
type rule uint8

const (
	noRule rule = iota
	lowerTokenIsRefused
	equalTokenLands
	higherTokenLands
	oneGuardForAllKeys
	fenceBarsLowerTokens
	fenceOfALowerTokenIsRefused
	restartKeepsTheHighestToken
	tokenZeroIsRefused
	onlyTheCarriedTokenLands
	theCarriedTokenLands
	afterAReleaseNothingLands
	refusedWriteChangesNothing
	fenceWritesNothing
	readGivesWhatLandedLast
	keysAreApart
	emptyValuesAreValues
	restartKeepsWhatLanded
	refusalMatchesErrStale
	refusalNamesTheHighest
	tokensCompareAsIntegers
	oddKeysAndValues
	endedContext
	dataGoesWithTheTokens
	neverPanics
	everyCallReturns
	linearizable
	rules // how many
)

// ruleTable is each rule's name, what it says and why, and where it is documented.
var ruleTable = [rules]struct{ name, says, read string }{
	lowerTokenIsRefused: {"lower-token-is-refused",
		"Once the storage has seen a token, no write with a lower one lands. Whoever sends it has been deposed, and may not know yet.", readGuard},
	equalTokenLands: {"equal-token-lands",
		"A token as high as the highest seen is admitted: a leader writes many times under one token.", readGuard},
	higherTokenLands: {"higher-token-lands",
		"A token above the highest seen is admitted. Else no successor could ever act.", readGuard},
	oneGuardForAllKeys: {"one-guard-for-all-keys",
		"A token seen with one key bars lower ones on every key. With a guard per key or row a deposed leader writes all keys that its successor has not written yet.", readTable},
	fenceBarsLowerTokens: {"fence-bars-lower-tokens",
		"Once Fence has returned nil no write with a lower token lands: it is the first act of a new leader, before it reads anything that it decides by.", readFence},
	fenceOfALowerTokenIsRefused: {"fence-of-a-lower-token-is-refused",
		"A fence under a lower token than the highest seen is refused: that is how a deposed leader learns that it is one.", readFence},
	restartKeepsTheHighestToken: {"restart-keeps-the-highest-token",
		"The highest token seen, by a write or a fence, is as durable as the data, before the answer leaves. Else a deposed leader's write lands after a restart.", readGuard},
	tokenZeroIsRefused: {"token-zero-is-refused",
		"Token 0 is refused: no lease grants it. It is what a client sends that forgot to set one.", readGuard},
	onlyTheCarriedTokenLands: {"only-the-carried-token-lands",
		"Under compare-and-swap nothing lands but under the token that the lease carries: not under an earlier one, nor one that was never granted.", readCAS},
	theCarriedTokenLands: {"the-carried-token-lands",
		"Under compare-and-swap a write lands as long as the lease carries its token.", readCAS},
	afterAReleaseNothingLands: {"after-a-release-nothing-lands",
		"Under compare-and-swap nothing lands between the release of the lease and its next grant.", readCAS},
	refusedWriteChangesNothing: {"refused-write-changes-nothing",
		"A write that is refused leaves everything as it was. To apply it first and look at the token afterwards is too late.", readStale},
	fenceWritesNothing: {"fence-writes-nothing",
		"A fence tells the storage of a token and changes no value.", readFence},
	readGivesWhatLandedLast: {"read-gives-what-landed-last",
		"A read gives the value of the last write that landed under its key, or says that there is none.", readRead},
	keysAreApart: {"keys-are-apart",
		"A write changes its own key and no other. Keys are equal only if all their bytes are.", readWrite},
	emptyValuesAreValues: {"empty-values-are-values",
		"The empty string is a value: once it landed, a read finds it, and tells it from nothing.", readRead},
	restartKeepsWhatLanded: {"restart-keeps-what-landed",
		"A write that was acknowledged is there after a restart.", readWrite},
	refusalMatchesErrStale: {"refusal-matches-ErrStale",
		"A refusal for the sake of the token is an error for which errors.Is(err, fence.ErrStale) holds. Any other error says that the outcome is unknown, and is tried again.", readStale},
	refusalNamesTheHighest: {"refusal-names-the-highest",
		"A *fence.StaleTokenError says the highest token that the storage has seen, or 0 if it does not tell.", "go doc fencepost/impl/fence StaleTokenError"},
	tokensCompareAsIntegers: {"tokens-compare-as-integers",
		"Tokens are integers of 64 bits and compare as such: not as text, where 10 is below 9, nor cut to 32 bits, nor as floating point, where 1<<53 and 1<<53+1 are one.", "go doc fencepost/impl/lease Token"},
	oddKeysAndValues: {"odd-keys-and-values-are-kept-or-refused",
		"A key or value that the storage cannot keep is refused by an error that does not match fence.ErrStale (the token is not at fault); all others are kept to the byte.", readWrite},
	endedContext: {"an-ended-context-does-no-harm",
		"A call whose context has ended may fail and leave its outcome unknown. It does not say that the token is stale, and the storage goes on working.", readKV},
	dataGoesWithTheTokens: {"data-goes-with-the-tokens",
		"A storage that forgets its tokens with its process (Options.Volatile) must forget its data too. Where the data stays, a deposed leader overwrites it.", readGuard},
	neverPanics: {"never-panics",
		"No call panics, whatever it is asked.", readKV},
	everyCallReturns: {"every-call-returns",
		"A call returns in the end, refused or not. One that never does has its leader wait, for a lock that was not given back for example.", readKV},
	linearizable: {"linearizable",
		"What concurrent callers were told must have an order: each call takes effect at one instant between its beginning and its end (Herlihy & Wing 1990). Where none exists, two steps that belong together were taken apart.", readGuard},
}

const (
	readGuard = "go doc fencepost/impl/fence Guard"
	readFence = "go doc fencepost/impl/lease Fencer"
	readCAS   = "go doc fencepost/impl/fence Carries"
	readStale = "go doc fencepost/impl/fence ErrStale"
	readKV    = "go doc fencepost/impl/fence KV"
	readWrite = "go doc fencepost/impl/fence KV.Write"
	readRead  = "go doc fencepost/impl/fence KV.Read"
	readTable = "go doc fencepost/impl/fence"
)

func (r rule) String() string { return ruleTable[r].name }

// hints are what to declare where a rule is broken on purpose.
var hints = map[rule]string{
	restartKeepsTheHighestToken: volatileHint,
	restartKeepsWhatLanded:      volatileHint,
	tokensCompareAsIntegers:     "The largest token that a storage can keep, where that is less than 1<<63-1, is declared: Options.MaxToken.",
	fenceBarsLowerTokens:        barrierHint,
	fenceOfALowerTokenIsRefused: barrierHint,
	fenceWritesNothing:          barrierHint,
	higherTokenLands:            "A storage that compares with the lease itself, and not with the highest token seen, declares it: Options.Carry.",
}

const (
	volatileHint = "A storage that is to forget everything with its process declares it: Options.Volatile. What is to survive a crash belongs into Env.Dir or Durable."
	barrierHint  = "A storage without a barrier declares it: Options.NoFence."
)

// Says is the rule of that name as failures tell it, and where it is documented:
// for checks of storages in other packages. It panics if there is none.
func Says(name string) (says, read string) {
	for _, r := range ruleTable {
		if r.name == name {
			return r.says, r.read
		}
	}
	panic("no rule of storages: " + name)
}
