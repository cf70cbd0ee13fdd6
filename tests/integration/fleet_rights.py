"""The least that an ACL user of Redis needs for Headgate; docs/guides/fleet.md says the same, which a test compares."""

ACL_KEYS = "~hg:*"
ACL_COMMANDS = (
    "-@all +hello +select +info +eval +evalsha +time +get +set +del +pexpire "
    "+llen +lindex +lrange +lset +lpush +rpush +rpop +ltrim +zadd +zrem +zcard +zremrangebyscore"
)
ACL_CLUSTER_COMMANDS = "+cluster|slots +asking"
