"""The minimal rights of a Redis ACL user for Headgate. A test compares them with
docs/guides/fleet.md."""

ACL_KEYS = "~hg:*"
ACL_COMMANDS = (
    "-@all +hello +select +info +eval +evalsha +time +get +set +del +pexpire +pttl "
    "+llen +lindex +lrange +lset +lpush +rpush +rpop +ltrim +zadd +zrem +zcard +zremrangebyscore "
    "+zscore +zrange"
)
ACL_CLUSTER_COMMANDS = "+cluster|slots +asking"
